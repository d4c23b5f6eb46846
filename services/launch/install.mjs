/** Installs what the lock file asks for, if anything is missing. Plain JavaScript: nothing is installed yet. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MINIMUM_NODE = [20, 19];

/** Runs npm's own command line with this very Node; inherits the terminal. Returns the exit code. */
export function npm(...args) {
  const own = process.env.npm_execpath;
  const [command, before] = own?.endsWith(".js") ? [process.execPath, [own]] : ["npm", []];
  const { status, error } = spawnSync(command, [...before, ...args], {
    cwd: ROOT,
    stdio: ["inherit", process.stderr, process.stderr],
  });
  if (error) console.error(`npm could not be run: ${error.message}`);
  return status ?? 1;
}

/**
 * Makes `node_modules` what `package-lock.json` says, without touching the network where it already is.
 * `dev` asks for the development dependencies as well. Ends the process if that is impossible.
 */
export function ensureInstalled({ dev }) {
  refuseOldNode();
  if (isComplete(dev)) return;
  console.error("installing dependencies (npm ci)");
  const code = npm("ci", "--no-audit", "--no-fund", ...(dev ? ["--include=dev"] : []));
  if (code === 0) return;
  console.error(
    "the dependencies could not be installed: see npm's own message above, then run the same command again",
  );
  process.exit(code);
}

function refuseOldNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor >= MINIMUM_NODE[1])) return;
  console.error(`Node ${MINIMUM_NODE.join(".")} or later is needed; this is ${process.versions.node}`);
  process.exit(1);
}

/** npm writes what it installed beside the packages, as its last act; equal entries mean a complete installation. */
function isComplete(dev) {
  const installed = packagesOf("node_modules/.package-lock.json");
  if (!installed) return false;
  return Object.entries(packagesOf("package-lock.json") ?? {}).every(([path, wanted]) => {
    if (path === "" || wanted.optional || (wanted.dev && !dev)) return true;
    return installed[path]?.version === wanted.version && installed[path]?.integrity === wanted.integrity;
  });
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(new URL(file, new URL("../../", import.meta.url)), "utf8")).packages;
  } catch {
    return undefined;
  }
}
