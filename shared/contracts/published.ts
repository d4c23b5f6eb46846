/**
 * Every pair of digests that a version has published (wire §6). `npm run contracts` rewrites the entry of the version
 * that is being made; entries of former versions stay. A test compares.
 */
import { readFileSync } from "node:fs";
import { authContracts } from "./auth.ts";
import { custodianContracts } from "./custodian.ts";
import { exchangeContracts } from "./exchange.ts";
import type { Pair } from "./operation.ts";

/** By version of the package, then by capability. */
export type Published = Readonly<Record<string, Readonly<Record<string, Pair>>>>;

export const PUBLISHED_FILE = new URL("./published.json", import.meta.url);

export const published = (): Published => JSON.parse(readFileSync(PUBLISHED_FILE, "utf8"));

export const packageVersion = (): string =>
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;

/** What the declarations give now. */
export function currentPairs(): Readonly<Record<string, Pair>> {
  const sets = [authContracts, exchangeContracts, custodianContracts];
  const pairs = sets.flatMap(({ cluster, pairs }) =>
    cluster.commands.flatMap(({ name, capability }) => {
      const pair = pairs.get(name);
      return pair ? [[capability, pair] as const] : [];
    }),
  );
  return Object.fromEntries(pairs);
}
