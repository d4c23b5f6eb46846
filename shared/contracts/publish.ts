/** `npm run contracts`: writes the pairs of this version into `published.json`. */
import { writeFileSync } from "node:fs";
import { currentPairs, PUBLISHED_FILE, packageVersion, published } from "./published.ts";

const all = { ...published(), [packageVersion()]: currentPairs() };
writeFileSync(PUBLISHED_FILE, `${JSON.stringify(all, null, 2)}\n`);
