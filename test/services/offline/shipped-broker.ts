/** A broker that runs on the shipped configuration and a state that `init` made. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { NatsConnection } from "@nats-io/transport-node";
import { findNatsServer } from "../../../services/launch/nats-server.ts";
import { serverArguments } from "../../../services/offline/broker-conf.ts";
import { parseCreds } from "../../../shared/credentials/creds.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { connectUser } from "../../../shared/nats/connect.ts";
import { freePorts } from "../../kit/broker.ts";

export interface ShippedBroker {
  readonly url: string;
  log(): string;
  /** Resolves when the server says that it read its files anew. */
  reload(): Promise<void>;
  /** Connects with a creds file, as a bearer's holder if a token is given. */
  connect(creds: string, more?: { token?: string; name?: string; inboxPrefix?: string }): Promise<NatsConnection>;
  stop(): Promise<void>;
}

export async function startShipped(stateDir: string): Promise<ShippedBroker> {
  const [port = 0] = await freePorts(1);
  const { path } = await findNatsServer();
  const child = spawn(path, await serverArguments(stateDir, { host: "127.0.0.1", port }), {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const says = (text: string, from = 0) =>
    said(
      child,
      () => log.slice(from).includes(text),
      () => log,
    );
  const url = `nats://127.0.0.1:${port}`;
  const opened: NatsConnection[] = [];
  await says("Server is ready");
  return {
    url,
    log: () => log,
    async reload() {
      const from = log.length;
      child.kill("SIGHUP");
      await says("Reloaded server configuration", from);
    },
    async connect(creds, more = {}) {
      const { jwt, seed } = parseCreds(creds);
      const user = { jwt, key: keyPairFromSeed(seed) };
      const connection = await connectUser({ servers: url, name: "test", user: () => user, reconnect: false, ...more });
      opened.push(connection);
      return connection;
    },
    async stop() {
      await Promise.all(opened.map((connection) => connection.close()));
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

/** Waits for the server's log to fulfil something; a server that ends instead rejects with that log. */
function said(child: ChildProcess, fulfilled: () => boolean, log: () => string): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (outcome: () => void) => {
      child.stderr?.off("data", look);
      child.off("exit", ended);
      outcome();
    };
    const look = () => fulfilled() && settle(resolve);
    const ended = () => settle(() => reject(new Error(`nats-server ended:\n${log()}`)));
    child.stderr?.on("data", look);
    child.on("exit", ended);
    look();
  });
}
