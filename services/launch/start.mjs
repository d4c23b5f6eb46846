/** `npm start`: installs what is missing, then runs the development launcher in this process. */
import { ensureInstalled } from "./install.mjs";

ensureInstalled({ dev: false });
const { register } = await import("tsx/esm/api");
register();
const { launch } = await import("./main.ts");
process.exit(await launch(process.argv.slice(2)));
