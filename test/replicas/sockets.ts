/** Which sockets a process has, and when the broker has noticed that they are gone. */
import { readdir, readFile, readlink } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/nats-core";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { newNonce, systemPorts } from "../../shared/ports.ts";
import { loadCreds } from "../../shared/secrets/keys.ts";
import type { TestSpace } from "../kit/space.ts";

/** Local TCP ports of every connection of a process. */
export async function portsOf(pid: number): Promise<ReadonlySet<number>> {
  const fds = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => "")));
  const inodes = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
  const [, ...rows] = (await readFile(`/proc/${pid}/net/tcp`, "utf8")).trim().split("\n");
  const ports = rows.flatMap((row) => {
    const [, local = "", , , , , , , , inode = ""] = row.trim().split(/\s+/);
    return inodes.has(inode) ? Number.parseInt(local.split(":")[1] ?? "", 16) : [];
  });
  return new Set(ports);
}

/** The broker's view of its connections, over the system account. */
export class Connections {
  readonly #system: NatsConnection;
  readonly #inboxPrefix: string;

  private constructor(system: NatsConnection, inboxPrefix: string) {
    this.#system = system;
    this.#inboxPrefix = inboxPrefix;
  }

  static async of(space: TestSpace): Promise<Connections> {
    const { jwt, seed } = await loadCreds(space.secrets, space.space, "custodian_system");
    const key = keyPairFromSeed(seed);
    return new Connections(await space.enter("system", { jwt, key }), `_INBOX_${key.public}`);
  }

  /** Resolves once the broker has none from these ports. */
  async gone(ports: ReadonlySet<number>): Promise<void> {
    while ((await this.#ports()).some((port) => ports.has(port))) await delay(2);
  }

  async #ports(): Promise<number[]> {
    const { server_id } = this.#system.info ?? {};
    const reply = `${this.#inboxPrefix}.${newNonce(systemPorts)}`;
    const asked = JSON.stringify({ limit: 65_536 });
    const options = { timeout: 5_000, noMux: true, reply };
    const answer = await this.#system.request(`$SYS.REQ.SERVER.${server_id}.CONNZ`, asked, options);
    return answer.json<{ data: { connections: { port: number }[] } }>().data.connections.map(({ port }) => port);
  }
}
