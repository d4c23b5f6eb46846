/** `npm start`: installs what is missing, then runs the development launcher in this process. */
import { ensureInstalled } from "./install.mjs";

ensureInstalled({ dev: false });
stopWithNpm();
const { register } = await import("tsx/esm/api");
register();
const { launch } = await import("./main.ts");
process.exit(await launch(process.argv.slice(2)));

/** npm hands a signal on to its shell, which dies of it without a word to us: then stop as if it had come here. */
function stopWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const shell = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(watch);
    process.kill(process.pid, "SIGTERM");
  }, 250);
  watch.unref();
}
