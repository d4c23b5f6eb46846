/** Tiny child processes for the supervisor's tests, each a line of JavaScript. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProcessSpec } from "../../../services/launch/child.ts";
import { startGuard } from "../../../services/launch/guard.ts";
import { type Happening, Supervisor } from "../../../services/launch/supervisor.ts";
import { systemPorts } from "../../../shared/ports.ts";

const READY = 'console.log("ready");';
const STAY = "setInterval(() => {}, 1e6);";

export const behaviours = {
  /** Ready at once, ends with 0 on SIGTERM. */
  good: `${READY}${STAY} process.on("SIGTERM", () => process.exit(0));`,
  /** Says why on stderr, never ready. */
  refusing: 'console.error("the reason"); process.exit(2);',
  /** Ready, then gone. */
  dying: (code: number) => `${READY} setImmediate(() => process.exit(${code}));`,
  /** Dies with the code at its first start, stays at its second. */
  dyingOnce: (code: number, flag: string) =>
    `const fs = require("fs"); ${READY}
     if (fs.existsSync("${flag}")) { ${STAY} process.on("SIGTERM", () => process.exit(0)); }
     else { fs.writeFileSync("${flag}", ""); setImmediate(() => process.exit(${code})); }`,
} as const;

export interface Stage {
  readonly folder: string;
  readonly happenings: Happening[];
  supervisor(...specs: ProcessSpec[]): Supervisor;
  spec(name: string, script: string, after?: string[]): ProcessSpec;
  /** Resolves once an event of that process was reported `count` times. */
  seen(process: string, event: Happening["event"], count?: number): Promise<void>;
  end(): Promise<void>;
}

export function stage(): Stage {
  const folder = mkdtempSync(join(tmpdir(), "launch-"));
  const guard = startGuard();
  const happenings: Happening[] = [];
  const waiting = new Set<() => void>();
  const supervisors: Supervisor[] = [];
  return {
    folder,
    happenings,
    spec: (name, script, after = []) => ({
      name,
      command: process.execPath,
      args: ["-e", script],
      env: {},
      after,
      log: join(folder, `${name}.log`),
    }),
    supervisor(...specs) {
      const report = (happening: Happening) => {
        happenings.push(happening);
        for (const look of waiting) look();
      };
      const supervisor = new Supervisor({ specs, guard, ports: systemPorts, report });
      supervisors.push(supervisor);
      return supervisor;
    },
    seen: (process, event, count = 1) =>
      new Promise((resolve) => {
        const look = () => {
          if (happenings.filter((h) => h.process === process && h.event === event).length < count) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    async end() {
      for (const supervisor of supervisors) await supervisor.stop();
      await guard.end();
      rmSync(folder, { recursive: true });
    },
  };
}

export function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
