import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalBytes, canonicalText, parseStrict, sha256Hex } from "../../shared/canonical.ts";
import { isAuthorityError } from "../../shared/errors.ts";

const { cases } = JSON.parse(readFileSync(new URL("../vectors/canonical.json", import.meta.url), "utf8"));
const limits = { maxBytes: 1_000, maxDepth: 8 };
const parse = (text: string) => parseStrict(new TextEncoder().encode(text), limits);
const refused = (text: string) => {
  try {
    parse(text);
  } catch (error) {
    return isAuthorityError(error, "bad-request");
  }
  return false;
};

test("canonical JSON has its known answers", () => {
  for (const { value, canonical, sha256 } of cases) {
    expect(canonicalText(value)).toBe(canonical);
    expect(sha256Hex(canonicalBytes(value))).toBe(sha256);
  }
});

test("strict parsing agrees with JSON.parse on what it admits", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 3 }), (text) => {
      fc.pre(Buffer.byteLength(text) <= limits.maxBytes);
      expect(parse(text)).toEqual(JSON.parse(text));
    }),
  );
});

test.each([
  ['{"a":1,"a":2}', "duplicate member"],
  ['{"a":{"b":1,"\\u0062":2}}', "duplicate member behind an escape"],
  ['"\\ud800"', "lone surrogate"],
  ['{"\\udfff":1}', "lone surrogate in a name"],
  ["[[[[[[[[[1]]]]]]]]]", "too deep"],
  [`"${"x".repeat(1_000)}"`, "too large"],
  ['{"a":1', "cut off"],
  ['"a', "unterminated string"],
  ["", "empty"],
  ["{'a':1}", "not JSON"],
  ["\ufeff{}", "byte order mark"],
  ['{"a":-1e999}', "a number beyond every double"],
  [`[${"9".repeat(400)}]`, "a number beyond every double, in digits alone"],
])("%s is refused: %s", (text) => {
  expect(refused(text)).toBe(true);
});

test("names behind escapes and without are told apart and compared as what they mean", () => {
  const name = fc.constantFrom("a", String.raw`\u0061`, "b", String.raw`\"`, String.raw`\\`);
  fc.assert(
    fc.property(fc.array(name, { maxLength: 4 }), (names) => {
      const text = `{${names.map((raw, at) => `"${raw}":${at}`).join(",")}}`;
      const distinct = new Set(names.map((raw) => JSON.parse(`"${raw}"`)));
      expect(refused(text)).toBe(distinct.size < names.length);
    }),
  );
});

test("bytes that are no UTF-8 are refused", () => {
  expect(() => parseStrict(new Uint8Array([0x22, 0xff, 0x22]), limits)).toThrow("UTF-8");
});

test("a number of any form is admitted as JSON.parse reads it", () => {
  const text = '[0,-0,-0.5e-3,1E+2,1.7976931348623157e308,5e-324,1e-999,"1e999"]';
  expect(parse(text)).toEqual(JSON.parse(text));
});

test("equal names in sibling objects are no duplicates", () => {
  expect(parse('[{"a":1},{"a":{"a":2}}]')).toEqual([{ a: 1 }, { a: { a: 2 } }]);
});

test("no garbage makes it throw anything but a refusal", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        parseStrict(bytes, limits);
      } catch (error) {
        expect(isAuthorityError(error, "bad-request")).toBe(true);
      }
    }),
  );
});
