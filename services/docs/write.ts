/** `npm run docs`: writes what is made from the declarations. */
import { mkdirSync, writeFileSync } from "node:fs";
import { lists } from "./lists.ts";

for (const [path, text] of Object.entries(lists())) writeFileSync(new URL(`../../${path}`, import.meta.url), text);

// Loaded only now, since it stands on the lists.
const { REFERENCE_FILE, reference } = await import("./reference.ts");
mkdirSync(new URL(".", REFERENCE_FILE), { recursive: true });
writeFileSync(REFERENCE_FILE, reference());
