/**
 * The schema profile (wire §6): JSON Schema 2020-12 whose objects are closed, whose strings and arrays are bounded, and
 * which refers to nothing but its own `$defs`. `{}` stands for any JSON, which the body bounds. A schema is read here,
 * never compiled or run, and every member name in it is a stranger's.
 */

import { safePath } from "../envelope.ts";
import { AuthorityError } from "../errors.ts";
import { CONTRACT } from "../limits.ts";
import { patternFault } from "./pattern-rules.ts";

const DIALECT = "https://json-schema.org/draft/2020-12/schema";
const TYPES: ReadonlySet<unknown> = new Set(["null", "boolean", "object", "array", "number", "integer", "string"]);

export function contractInvalid(rule: string, path: string): AuthorityError {
  const errors = [{ path: safePath(path), message: rule }];
  return new AuthorityError("contract-invalid", rule, { details: [{ kind: "ai.cotal.ep.validation", errors }] });
}

/** One schema of the document, and where a fault in it is told. */
interface Place {
  readonly path: string;
  /** The definition it stands in, `undefined` outside all of them. */
  readonly within: string | undefined;
}

interface Reading {
  /** By definition, the definitions that it refers to. */
  readonly references: Map<string | undefined, Set<string>>;
}

type Keyword = (value: unknown, place: Place, reading: Reading) => void;

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === "string";
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

const below = (place: Place, name: string): Place => ({
  ...place,
  path: `${place.path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`,
});

const must =
  (is: (value: unknown) => boolean, rule: string): Keyword =>
  (value, place) => {
    if (!is(value)) throw contractInvalid(rule, place.path);
  };

const anything: Keyword = () => {};
const text = must(isText, "this keyword takes a string");
const flag = must((value) => typeof value === "boolean", "this keyword takes a boolean");
const number = must((value) => typeof value === "number", "this keyword takes a number");
const count = must(isCount, "this keyword takes a non-negative integer");
const list = must(Array.isArray, "this keyword takes an array");
const names = must((value) => Array.isArray(value) && value.every(isText), "this keyword takes an array of strings");

const pattern: Keyword = (value, { path }) => {
  const fault = patternFault(value);
  if (fault !== undefined) throw contractInvalid(fault, path);
};

const schemas: Keyword = (value, place, reading) => {
  if (!Array.isArray(value) || value.length === 0) throw contractInvalid("this keyword takes schemas", place.path);
  for (const [i, one] of value.entries()) schema(one, below(place, String(i)), reading);
};

const members =
  (key?: Keyword): Keyword =>
  (value, place, reading) => {
    if (!isObject(value)) throw contractInvalid("this keyword takes an object of schemas", place.path);
    for (const [name, one] of Object.entries(value)) {
      key?.(name, below(place, name), reading);
      schema(one, below(place, name), reading);
    }
  };

const definitions: Keyword = (value, place, reading) => {
  // Reachable as `#/$defs/…` only at the root.
  if (place.path !== "/$defs") throw contractInvalid("definitions stand at the root alone", place.path);
  if (!isObject(value)) throw contractInvalid("this keyword takes an object of schemas", place.path);
  for (const [name, one] of Object.entries(value)) {
    schema(one, { ...below(place, name), within: name }, reading);
  }
};

const reference: Keyword = (value, place, reading) => {
  const [, pointer] = isText(value) ? (/^#\/\$defs\/([^/%]+)$/.exec(value) ?? []) : [];
  if (pointer === undefined) throw contractInvalid("a schema refers to its own definitions alone", place.path);
  const targets = reading.references.get(place.within) ?? new Set();
  reading.references.set(place.within, targets.add(pointer.replaceAll("~1", "/").replaceAll("~0", "~")));
};

const types: Keyword = (value, { path }) => {
  const given: unknown[] = Array.isArray(value) ? value : [value];
  if (given.length === 0 || !given.every((one) => TYPES.has(one))) throw contractInvalid("an unknown type", path);
};

/** Every keyword there may be. What identifies, anchors or resolves dynamically is not among them. */
const KEYWORDS: ReadonlyMap<string, Keyword> = new Map(
  Object.entries({
    $schema: must((value) => value === DIALECT, "another dialect of JSON Schema"),
    $comment: text,
    $defs: definitions,
    $ref: reference,
    type: types,
    const: anything,
    enum: must((value) => Array.isArray(value) && value.length > 0, "an enumeration has values"),
    title: text,
    description: text,
    default: anything,
    examples: list,
    deprecated: flag,
    readOnly: flag,
    writeOnly: flag,
    format: text,
    allOf: schemas,
    anyOf: schemas,
    oneOf: schemas,
    not: schema,
    if: schema,
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema; nobody awaits this table
    then: schema,
    else: schema,
    properties: members(),
    patternProperties: members(pattern),
    additionalProperties: schema,
    propertyNames: schema,
    unevaluatedProperties: schema,
    dependentSchemas: members(),
    dependentRequired: must(
      (value) => isObject(value) && Object.values(value).every((one) => Array.isArray(one) && one.every(isText)),
      "this keyword takes an object of names",
    ),
    required: names,
    minProperties: count,
    maxProperties: count,
    items: schema,
    prefixItems: schemas,
    contains: schema,
    unevaluatedItems: schema,
    minItems: count,
    maxItems: count,
    minContains: count,
    maxContains: count,
    uniqueItems: flag,
    minLength: count,
    maxLength: count,
    pattern,
    contentEncoding: text,
    contentMediaType: text,
    contentSchema: schema,
    multipleOf: number,
    minimum: number,
    maximum: number,
    exclusiveMinimum: number,
    exclusiveMaximum: number,
  } satisfies Record<string, Keyword>),
);

/** Keywords by which a schema without `type` still speaks of one. */
const SPEAKS_OF = {
  object: ["properties", "patternProperties", "additionalProperties"],
  array: ["items", "prefixItems"],
  string: ["pattern", "minLength"],
} as const;

function schema(value: unknown, place: Place, reading: Reading): void {
  if (typeof value === "boolean") return;
  if (!isObject(value)) throw contractInvalid("a schema is an object", place.path);
  const given = new Map<string, unknown>(Object.entries(value));
  for (const [name, one] of given) {
    const keyword = KEYWORDS.get(name);
    if (!keyword) throw contractInvalid("a keyword outside the profile", below(place, name).path);
    keyword(one, below(place, name), reading);
  }
  bounded(given, place.path);
}

function bounded(given: ReadonlyMap<string, unknown>, path: string): void {
  if (given.has("const") || given.has("enum")) return;
  const type = given.get("type");
  const isOf = (one: keyof typeof SPEAKS_OF): boolean =>
    type === undefined
      ? SPEAKS_OF[one].some((keyword) => given.has(keyword))
      : type === one || (Array.isArray(type) && type.includes(one));
  if (isOf("object") && given.get("additionalProperties") !== false) {
    throw contractInvalid("an object is closed: additionalProperties false", path);
  }
  if (isOf("string") && !given.has("maxLength")) throw contractInvalid("a string has a maxLength", path);
  if (isOf("array") && !given.has("maxItems") && given.get("items") !== false) {
    throw contractInvalid("an array has maxItems", path);
  }
}

/** Each reference has its target, and no chain of them is longer than the limit; a circle has no end. */
function chains(document: object, { references }: Reading): void {
  const defs = new Map<string, unknown>(Object.entries(new Map(Object.entries(document)).get("$defs") ?? {}));
  const heights = new Map<string | undefined, number>();
  const heightOf = (name: string | undefined, depth: number): number => {
    const known = heights.get(name);
    if (depth + (known ?? 0) > CONTRACT.maxDepth) {
      throw contractInvalid(`references chain further than ${CONTRACT.maxDepth}`, "/$defs");
    }
    if (known !== undefined) return known;
    let height = 0;
    for (const target of references.get(name) ?? []) {
      if (!defs.has(target)) throw contractInvalid("a reference without its definition", "/$defs");
      height = Math.max(height, 1 + heightOf(target, depth + 1));
    }
    heights.set(name, height);
    return height;
  };
  for (const name of references.keys()) heightOf(name, 0);
}

/** Throws `contract-invalid` unless the document, of a depth within the limit, is a schema within the profile. */
export function checkSchema(document: unknown): void {
  if (!isObject(document)) throw contractInvalid("a schema artifact is an object", "");
  const reading: Reading = { references: new Map() };
  schema(document, { path: "", within: undefined }, reading);
  chains(document, reading);
}
