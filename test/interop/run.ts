/** Runs another program to its end, and finds the tools that a machine may or may not have. */
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";

export interface Ran {
  /** `null` if it was stopped for its time. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly ms: number;
  readonly cwd?: string;
  /** Beside this process's own environment. */
  readonly env?: Readonly<Record<string, string>>;
}

export function run(command: string, args: readonly string[], { ms, cwd, env }: RunOptions): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
      ...(cwd === undefined ? {} : { cwd }),
      timeout: ms,
      killSignal: "SIGKILL",
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** The path of a tool in `PATH` or in one of the further folders, if there is one. */
export async function findTool(name: string, ...folders: string[]): Promise<string | undefined> {
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  for (const folder of [...path, ...folders]) {
    const file = join(folder, name);
    const usable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return file;
  }
  return undefined;
}

/** Where `go install` puts programs. */
export const GO_BIN = join(homedir(), "go", "bin");

/** What a failed program said last, for whoever reads why a test was skipped. */
export const lastLine = ({ code, stdout, stderr }: Ran): string => {
  const said = `${stdout}\n${stderr}`.trim().split("\n").at(-1) ?? "";
  return `${code === null ? "out of time" : `exit code ${code}`}: ${said.slice(0, 200)}`;
};
