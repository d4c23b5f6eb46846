import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contains, isPattern, matches, overlaps } from "../../shared/patterns.ts";

const vectors: { cases: [child: string, parent: string, contained: boolean][] } = JSON.parse(
  readFileSync(new URL("../vectors/pattern-containment.json", import.meta.url), "utf8"),
);

/** Every subject of one to five tokens over an alphabet one letter wider than the patterns'. */
const subjects: string[] = [];
for (let layer = [""], depth = 0; depth < 5; depth += 1) {
  layer = layer.flatMap((head) => ["a", "b", "z"].map((token) => (head ? `${head}.${token}` : token)));
  subjects.push(...layer);
}

/** The broker's reading, written independently: a regular expression per pattern. */
const reading = (pattern: string): Set<string> => {
  const source = pattern
    .split(".")
    .map((token) => (token === "*" ? "[^.]+" : token === ">" ? ".+" : token))
    .join("\\.");
  const regex = new RegExp(`^${source}$`);
  return new Set(subjects.filter((subject) => regex.test(subject)));
};

const pattern = fc
  .tuple(fc.array(fc.constantFrom("a", "b", "*"), { minLength: 0, maxLength: 3 }), fc.constantFrom("a", "b", "*", ">"))
  .map(([head, last]) => [...head, last].join("."));

describe("subject patterns", () => {
  it("contain one another exactly as the enumerated vectors say", () => {
    const wrong = vectors.cases.filter(([child, parent, contained]) => contains(parent, child) !== contained);
    expect(wrong).toEqual([]);
    expect(vectors.cases.length).toBeGreaterThan(1_800);
  });

  it("contain, match and overlap as their sets of subjects do", () => {
    fc.assert(
      fc.property(pattern, pattern, (one, other) => {
        const [left, right] = [reading(one), reading(other)];
        expect(contains(one, other)).toBe([...right].every((subject) => left.has(subject)));
        expect(overlaps(one, other)).toBe([...right].some((subject) => left.has(subject)));
        for (const subject of subjects) expect(matches(one, subject)).toBe(left.has(subject));
      }),
      { numRuns: 300 },
    );
  });

  it("are tokens, with wildcards only as whole tokens and `>` only last", () => {
    for (const good of ["a", "*", ">", "a.*.b", "a.>", "$JS.API.INFO"]) expect(isPattern(good)).toBe(true);
    for (const bad of ["", "a.", ".a", "a..b", ">.a", "a.>.b", "a*", "a.b>", "a b", "a\n"]) {
      expect(isPattern(bad)).toBe(false);
    }
  });
});

describe("a filter", () => {
  it.each([
    ["a.>", "a.b", true],
    ["a.>", "a.b.c", true],
    ["a.>", "a", false],
    ["a.*.c", "a.b.c", true],
    ["a.*.c", "a.b.d", false],
    ["a.b", "a.b.c", false],
    ["a.b", "a.b", true],
  ])("%s covers %s: %s", (filter, subject, covered) => {
    expect(matches(filter, subject)).toBe(covered);
  });
});
