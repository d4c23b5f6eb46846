/** `npm run docs`: writes what is made from the declarations. */
import { mkdirSync, writeFileSync } from "node:fs";
import { REFERENCE_FILE, reference } from "./reference.ts";

mkdirSync(new URL(".", REFERENCE_FILE), { recursive: true });
writeFileSync(REFERENCE_FILE, reference());
