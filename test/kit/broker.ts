/** A real nats-server process on free ports in a folder of its own, ready in a few hundred milliseconds. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { createServer, connect as dial } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findNatsServer } from "../../services/launch/nats-server.ts";

export interface BrokerOptions {
  /** Configuration text (accounts, authorization, cluster, …) appended to ports, name and JetStream. */
  readonly config?: string | ((broker: { readonly dir: string; readonly port: number }) => string);
  /** `false` leaves out the `jetstream` block; text goes inside it, beside `store_dir` and `sync_interval`. */
  readonly jetstream?: boolean | string;
  readonly name?: string;
}

export interface Broker {
  readonly url: string;
  readonly port: number;
  /** Own temporary folder, removed by `stop`. */
  readonly dir: string;
  readonly pid: number;
  /** Path of the configuration file. */
  readonly config: string;
  readonly name: string;
  /** What the server logged so far. */
  log(): string;
  /** Re-reads the configuration; `config` replaces the text given at the start. Waits until it is in force. */
  reload(config?: string): Promise<void>;
  /** Sends the signal and waits for its effect: the end of the process, or with SIGSTOP its rest. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts the process again on the same ports and folder, after a stop or a kill. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Children and folders of this process: a failing test leaves neither behind. */
const children = new Set<ChildProcess>();
const folders = new Set<string>();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

/** Ports that nothing listens on now. All are held until all are known, so no two are equal. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port was bound");
    return address.port;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

let binary: Promise<string> | undefined;

export async function startBroker(options: BrokerOptions = {}, port?: number): Promise<Broker> {
  binary ??= findNatsServer().then((found) => found.path);
  const server = new ServerProcess(await binary, options, port ?? (await freePorts(1))[0] ?? 0);
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

class ServerProcess implements Broker {
  readonly port: number;
  readonly dir = mkdtempSync(join(tmpdir(), "broker-"));
  readonly name: string;
  readonly #path: string;
  readonly #jetstream: boolean | string;
  #text: string;
  #child: ChildProcess | undefined;
  #log = "";

  constructor(path: string, options: BrokerOptions, port: number) {
    folders.add(this.dir);
    this.#path = path;
    this.port = port;
    this.name = options.name ?? `broker-${port}`;
    this.#jetstream = options.jetstream ?? true;
    const { config = "" } = options;
    this.#text = typeof config === "string" ? config : config(this);
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  get config(): string {
    return join(this.dir, "server.conf");
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  log(): string {
    return this.#log;
  }

  async start(): Promise<void> {
    await this.#writeConfig();
    const child = spawn(this.#path, ["-c", this.config], { stdio: ["ignore", "ignore", "pipe"] });
    this.#child = child;
    children.add(child);
    child.once("exit", () => children.delete(child));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#log += text;
    });
    await this.#accepting(child);
  }

  async reload(config?: string): Promise<void> {
    if (config !== undefined) this.#text = config;
    await this.#writeConfig();
    const before = this.#log.length;
    await this.kill("SIGHUP");
    const deadline = Date.now() + 5_000;
    for (;;) {
      const since = this.#log.slice(before);
      if (since.includes("Reloaded server configuration")) return;
      if (since.includes("Failed to reload")) throw new Error(`the server refused the configuration:\n${since}`);
      if (Date.now() > deadline) throw new Error(`the server did not reload:\n${since}`);
      await delay(5);
    }
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    if (signal === "SIGSTOP") await stopped(this.pid);
    else if (signal !== "SIGCONT" && signal !== "SIGHUP") await once(child, "exit");
  }

  async restart(): Promise<void> {
    await this.kill("SIGKILL");
    await this.start();
  }

  async stop(): Promise<void> {
    await this.kill("SIGKILL");
    rmSync(this.dir, { recursive: true, force: true });
    folders.delete(this.dir);
  }

  async #writeConfig(): Promise<void> {
    const inside = typeof this.#jetstream === "string" ? this.#jetstream : "";
    const jetstream = `jetstream { store_dir: ${JSON.stringify(join(this.dir, "store"))}, sync_interval: always\n${inside}\n}`;
    await writeFile(
      this.config,
      [
        `server_name: ${this.name}`,
        `listen: "127.0.0.1:${this.port}"`,
        "max_control_line: 65536",
        this.#jetstream === false ? "" : jetstream,
        this.#text,
      ].join("\n"),
    );
  }

  /** Resolves once the client port greets with INFO; a server that ends before rejects with its log. */
  async #accepting(child: ChildProcess): Promise<void> {
    const deadline = Date.now() + 10_000;
    while (!(await greets(this.port))) {
      if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
        const text = await readFile(this.config, "utf8");
        throw new Error(`nats-server did not start:\n${this.#log}\n${text}`);
      }
      await delay(10);
    }
  }
}

/** Waits until every thread of a process rests: a signal takes effect some time after it was sent. */
async function stopped(pid: number): Promise<void> {
  const tasks = `/proc/${pid}/task`;
  for (;;) {
    const threads = await readdir(tasks).catch(() => []);
    const states = await Promise.all(
      threads.map((thread) => readFile(`${tasks}/${thread}/stat`, "latin1").catch(() => ") T")),
    );
    if (states.every((stat) => /^.*\) [TtZX]/s.test(stat))) return;
    await delay(2);
  }
}

/** Whether something speaks the NATS protocol at the port. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = dial(port, "127.0.0.1");
    const end = (result: boolean) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(1_000, () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
    socket.once("data", (data) => end(data.toString("latin1").startsWith("INFO ")));
  });
}
