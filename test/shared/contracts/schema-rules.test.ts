import { describe, expect, it } from "vitest";
import { checkSchema } from "../../../shared/contracts/schema-rules.ts";
import { AuthorityError, isAuthorityError } from "../../../shared/errors.ts";
import { CONTRACT } from "../../../shared/limits.ts";

const schemaCode = (schema: unknown): string => {
  try {
    checkSchema(schema);
    return "accepted";
  } catch (error) {
    return isAuthorityError(error) ? error.code : String(error);
  }
};

/** What JSON a stranger sends. */
const parsed = (text: string): unknown => JSON.parse(text);

describe("the schema profile", () => {
  it.each<[string, unknown]>([
    ["any JSON", {}],
    ["any JSON, described", { title: "anything", description: "bounded by the body" }],
    ["a closed object", { type: "object", properties: { a: { type: "null" } }, additionalProperties: false }],
    ["a constant or enumerated string", { anyOf: [{ type: "string", const: "a" }, { enum: ["b", "c"] }] }],
    ["a tuple", { type: "array", prefixItems: [{ type: "null" }], items: false }],
    ["definitions in use", { $defs: { a: { type: "null" }, "b/c~": { $ref: "#/$defs/a" } }, $ref: "#/$defs/b~1c~0" }],
    [
      "members named like a prototype's",
      parsed(
        '{"type":"object","additionalProperties":false,"properties":{"__proto__":{"type":"null"},"constructor":{"type":"null"},"toString":{"type":"null"}}}',
      ),
    ],
    [
      "a definition named like a prototype's",
      parsed('{"$defs":{"__proto__":{"type":"null"}},"$ref":"#/$defs/__proto__"}'),
    ],
    ["groups, classes, escapes", { type: "string", maxLength: 9, pattern: "^(?:a|(?<year>[0-9]{4}))\\\\1\\d[(][?]=$" }],
    ["its own dialect", { $schema: "https://json-schema.org/draft/2020-12/schema", type: "null" }],
    ["a conditional", parsed('{"if":{"type":"null"},"then":{},"else":{"type":"boolean"}}')],
  ])("admits %s", (_, schema) => {
    expect(schemaCode(schema)).toBe("accepted");
  });

  it.each<[string, unknown]>([
    ["an open object", { type: "object", properties: {} }],
    ["an object open by a schema", { type: "object", additionalProperties: { type: "null" } }],
    ["an object that does not say so", { properties: { a: { type: "null" } } }],
    ["an open object among types", { type: ["object", "null"] }],
    ["an unbounded string", { type: "string", pattern: "^a$" }],
    ["an unbounded string among types", { type: ["null", "string"] }],
    ["an unbounded array", { type: "array", items: { type: "null" } }],
    ["an unbounded array that does not say so", { items: { type: "null" } }],
    ["an unbounded string deep inside", { allOf: [{ not: { anyOf: [{ type: "string" }] } }] }],
    ["a bound that is none", { type: "string", maxLength: "64" }],
    ["an unknown type", { type: "any" }],
    ["an unknown keyword", { type: "null", definitions: {} }],
    ["an inherited keyword's name", parsed('{"type":"null","__proto__":{}}')],
    ["an identifier", { $id: "https://example.test/a", type: "null" }],
    ["an anchor", { $anchor: "a", type: "null" }],
    ["a dynamic reference", { $dynamicRef: "#a" }],
    ["another dialect", { $schema: "http://json-schema.org/draft-07/schema#", type: "null" }],
    ["a remote reference", { $ref: "https://example.test/schema" }],
    ["a reference to a file", { $ref: "file:///etc/passwd" }],
    ["a reference to the root", { $ref: "#" }],
    ["a reference into the inside", { $defs: { a: {} }, $ref: "#/$defs/a/items" }],
    ["a reference with escapes of its own", { $defs: { a: {} }, $ref: "#/$defs/%61" }],
    ["a reference without a target", { $ref: "#/$defs/a" }],
    ["a reference to an inherited member", { $defs: {}, $ref: "#/$defs/constructor" }],
    ["definitions below the root", { not: { $defs: { a: {} } } }],
    ["a circle of one", { $defs: { a: { $ref: "#/$defs/a" } } }],
    ["a circle of two", { $defs: { a: { $ref: "#/$defs/b" }, b: { not: { $ref: "#/$defs/a" } } }, $ref: "#/$defs/a" }],
    ["a schema that is none", { not: 7 }],
    ["an empty list of schemas", { anyOf: [] }],
  ])("refuses %s", (_, schema) => {
    expect(schemaCode(schema)).toBe("contract-invalid");
  });

  it.each([
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "(?<!a)",
    "a(?:b(?=c))",
    "(a)\\1",
    "(?:\\1)",
    "(?:(?=a))",
    "(?<n>(?!a))",
    "\\\\(?=a)",
    "(?<n>a)\\k<n>",
    "(?P<n>a)",
    "(?i:a)",
    "a\\",
    "(?",
  ])("refuses the pattern %s, in whatever place", (pattern) => {
    expect(schemaCode({ type: "string", maxLength: 9, pattern })).toBe("contract-invalid");
    const patternProperties = { [pattern]: { type: "null" } };
    expect(schemaCode({ type: "object", patternProperties, additionalProperties: false })).toBe("contract-invalid");
  });

  it("bounds the length of a pattern", () => {
    const of = (length: number) => ({ type: "string", maxLength: 9, pattern: "a".repeat(length) });
    expect(schemaCode(of(CONTRACT.maxPattern))).toBe("accepted");
    expect(schemaCode(of(CONTRACT.maxPattern + 1))).toBe("contract-invalid");
  });

  it("bounds chains of references", () => {
    const chain = (length: number) => {
      const defs = Array.from({ length }, (_, i) => [`d${i}`, i === length - 1 ? {} : { $ref: `#/$defs/d${i + 1}` }]);
      return { $defs: Object.fromEntries(defs), $ref: "#/$defs/d0" };
    };
    expect(schemaCode(chain(CONTRACT.maxDepth))).toBe("accepted");
    expect(schemaCode(chain(CONTRACT.maxDepth + 1))).toBe("contract-invalid");
    expect(schemaCode(chain(10_000))).toBe("contract-invalid");
  });

  it("reads definitions that refer to one another many times over in no time", () => {
    const both = (i: number) => ({ allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] });
    const fan = Array.from({ length: 30 }, (_, i) => [`d${i}`, { anyOf: [both(i), both(i)] }]);
    const $defs = { ...Object.fromEntries(fan), d30: {} };
    expect(schemaCode({ $defs })).toBe("accepted");
  });

  it("tells where and which rule, never a value", () => {
    try {
      checkSchema({ type: "object", additionalProperties: false, properties: { 'a"\n<b>': { type: "string" } } });
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof AuthorityError)) throw error;
      expect(error.message).toBe("a string has a maxLength");
      expect(error.details).toEqual([
        {
          kind: "ai.cotal.ep.validation",
          errors: [{ path: "/properties/a???b?", message: "a string has a maxLength" }],
        },
      ]);
    }
  });
});
