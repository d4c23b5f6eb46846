/** Every process of a space but the broker, as `npm start` runs them, each to be killed and started by itself. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Child, describeExit, type ProcessSpec } from "../../services/launch/child.ts";
import { processesOf } from "../../services/launch/processes.ts";
import type { TestSpace } from "../kit/space.ts";

const SOON = fileURLToPath(new URL("./rescan-soon.ts", import.meta.url));

const running = new Set<Child>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export class Processes {
  readonly #specs: ReadonlyMap<string, ProcessSpec>;
  readonly #children = new Map<string, Child>();

  private constructor(specs: readonly ProcessSpec[]) {
    this.#specs = new Map(specs.map((spec) => [spec.name, spec]));
  }

  /** Two of `auth`, `exchange` and `callout` each, a custodian and a gateway; all together, since any order works. */
  static async start({ space, settings, stateDir, broker }: TestSpace): Promise<Processes> {
    const logs = join(stateDir, "logs");
    await mkdir(logs, { recursive: true });
    const specs = await processesOf({
      space,
      settings,
      stateDir,
      logs,
      created: false,
      brokerPort: broker.port,
      natsServer: "",
      replicas: 2,
      cluster: false,
    });
    const processes = new Processes(specs.filter(({ name }) => name !== "broker").map(lookingSoon));
    try {
      await Promise.all([...processes.#specs.keys()].map((name) => processes.start(name)));
    } catch (error) {
      await processes.stop();
      throw error;
    }
    return processes;
  }

  /** Resolves once it is ready. */
  async start(name: string): Promise<void> {
    const spec = this.#specs.get(name);
    if (!spec) throw new Error(`no process is named ${name}`);
    const child = new Child(spec);
    running.add(child);
    void child.exited.then(() => running.delete(child));
    this.#children.set(name, child);
    const ready = child.ready(new AbortController().signal);
    const ended = await Promise.race([ready.then(() => undefined), child.exited]);
    if (ended) throw new Error(`${name} ended before it was ready, with ${describeExit(ended)}:\n${child.tail()}`);
  }

  pid(name: string): number {
    return this.#child(name).pid ?? 0;
  }

  /** As the system's own reaper: no word before. Resolves once the process has ended. */
  async kill(name: string): Promise<void> {
    const child = this.#child(name);
    child.kill("SIGKILL");
    await child.exited;
  }

  async stop(): Promise<void> {
    const children = [...running];
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(children.map(({ exited }) => exited));
  }

  #child(name: string): Child {
    const child = this.#children.get(name);
    if (!child) throw new Error(`${name} does not run`);
    return child;
  }
}

/** After the loader of TypeScript, before the program. */
function lookingSoon(spec: ProcessSpec): ProcessSpec {
  const [loading, loader, ...program] = spec.args;
  return { ...spec, args: [loading, loader, "--import", SOON, ...program].filter((arg) => arg !== undefined) };
}
