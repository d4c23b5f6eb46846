/** One callout in a process of its own: `node --import tsx replica.ts <state> <url>`. Logs to standard output. */
import { startCallout } from "../../../services/callout/start.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { openFolder } from "../../../shared/secrets/folder.ts";
import { spaceFiles } from "../../../shared/secrets/settings.ts";
import { space } from "./people.ts";
import { calloutDeps } from "./space.ts";

const [stateDir = "", url = ""] = process.argv.slice(2);
const { identity } = await directoryStore(stateDir);
const settings = await spaceFiles(await openFolder(stateDir, { ports: systemPorts }), space).settings(identity);
await startCallout(await calloutDeps(stateDir, url, settings, (line) => process.stdout.write(line)));
