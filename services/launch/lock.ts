/** One launcher per state folder: two brokers on one data folder would ruin it. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = "launch.lock";

export interface Lock {
  release(): Promise<void>;
}

/** Throws an `Error` that names the holder. What a killed launcher left behind is taken over. */
export async function lockState(stateDir: string): Promise<Lock> {
  const path = join(stateDir, FILE);
  for (;;) {
    try {
      await writeFile(path, `${process.pid}\n`, { flag: "wx", mode: 0o600 });
      return { release: () => rm(path, { force: true }) };
    } catch (error) {
      if (!(error instanceof Error) || !("code" in error) || error.code !== "EEXIST") throw error;
    }
    const holder = Number(await readFile(path, "utf8").catch(() => "0"));
    if (holder !== process.pid && isRunning(holder)) {
      throw new Error(`${stateDir} is in use by process ${holder}: stop that one, or name another folder with --state`);
    }
    await rm(path, { force: true });
  }
}

function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
