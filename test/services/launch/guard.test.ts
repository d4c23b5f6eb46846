import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { isAlive } from "./dummies.ts";

const GUARD = fileURLToPath(new URL("../../../services/launch/guard.ts", import.meta.url));

it("a launcher that is killed takes its processes with it", async () => {
  const victim = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], { stdio: "ignore" });
  const ended = once(victim, "exit");
  const script = `
    const { startGuard } = await import(${JSON.stringify(GUARD)});
    startGuard().add(${victim.pid});
    console.log("guarded");
    setInterval(() => {}, 1e6);`;
  const launcher = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(launcher.stdout, "data");
  launcher.kill("SIGKILL");
  expect(await ended).toEqual([null, "SIGTERM"]);
  expect(isAlive(victim.pid)).toBe(false);
});
