import { describe, expect, test } from "vitest";
import { Issuances } from "../../../services/callout/issuances.ts";
import { CALLOUT } from "../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";

const { issuedBurst, issuedEveryMs, issuedBuckets } = CALLOUT;
const uid = newUid(systemPorts);

/** How many of an incarnation's it grants in a row. */
function granted(issuances: Issuances, of = uid): number {
  for (let count = 0; ; count += 1) {
    try {
      issuances.take(of);
    } catch {
      return count;
    }
  }
}

describe("the new generations of an incarnation", () => {
  test("are so many at once, and one more with time, but no more than that at once", () => {
    let now = 5;
    const issuances = new Issuances({ monotonic: () => now });
    expect(granted(issuances)).toBe(issuedBurst);
    now += issuedEveryMs - 1;
    expect(granted(issuances)).toBe(0);
    now += 1 + 2 * issuedEveryMs;
    expect(granted(issuances)).toBe(3);
    now += 2 * issuedBurst * issuedEveryMs;
    expect(granted(issuances)).toBe(issuedBurst);
  });

  test("are counted apart from every other's, of so many incarnations", () => {
    const issuances = new Issuances({ monotonic: () => 0 });
    expect(granted(issuances)).toBe(issuedBurst);
    for (let other = 1; other < issuedBuckets; other += 1) issuances.take(newUid(systemPorts));
    expect(granted(issuances)).toBe(0);
    issuances.take(newUid(systemPorts)); // the first one has become the least recent
    expect(granted(issuances)).toBe(issuedBurst);
  });

  test("are refused with what to change", () => {
    const issuances = new Issuances({ monotonic: () => 0 });
    granted(issuances);
    expect(() => issuances.take(uid)).toThrow(
      expect.objectContaining({ code: "resource-exhausted", message: "too many connections under fresh nonces" }),
    );
  });
});
