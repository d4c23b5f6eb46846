import { describe, expect, it } from "vitest";
import { currentPairs, packageVersion, published } from "../../../shared/contracts/published.ts";

describe("the published pairs", () => {
  it("of this version are those of the declarations; `npm run contracts` writes them", () => {
    expect(published()[packageVersion()]).toEqual(currentPairs());
  });

  it("lose no operation from one version to the next, because within a URN changes only add", () => {
    const now = Object.keys(currentPairs());
    for (const pairs of Object.values(published())) expect(now).toEqual(expect.arrayContaining(Object.keys(pairs)));
  });
});
