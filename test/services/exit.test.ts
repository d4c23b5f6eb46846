import { expect, it } from "vitest";
import { exitOfEnd } from "../../services/exit.ts";
import { AuthorityError, internal, unavailable } from "../../shared/errors.ts";
import { exitOfStart } from "../../shared/exit.ts";
import { refused } from "../../shared/secrets/document.ts";

it.each([
  ["closed", 0],
  ["superseded", 3],
  ["drift", 1],
  ["broker-lost", 1],
  ["subscription-lost", 1],
] as const)("a process that ended because of %s exits %i", (reason, code) => {
  expect(exitOfEnd(reason)).toBe(code);
});

it.each([
  ["bad inputs", new AuthorityError("bad-request", "no"), 2],
  ["a state that refuses", refused("space.json", "is not there"), 2],
  ["a broker that refuses its user", new AuthorityError("unauthenticated", "no"), 2],
  ["no broker", unavailable("connect"), 4],
  ["corruption", internal("a row"), 1],
  ["a bug", new TypeError("x"), 1],
])("a start that fails for %s exits with its code", (_, error, code) => {
  expect(exitOfStart(error)).toBe(code);
});
