/** Spaces that run as processes started from the command line, on one broker that runs on the shipped configuration. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { NatsConnection } from "@nats-io/transport-node";
import { personOwner } from "../../../services/exchange/owner.ts";
import { AuthorityClient } from "../../../shared/client.ts";
import { exchangeUser } from "../../../shared/contracts/exchange/exchange-user.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { provisionedUser } from "../../../shared/credentials/users.ts";
import { connectUser } from "../../../shared/nats/connect.ts";
import { newNonce, systemPorts } from "../../../shared/ports.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { openFolder } from "../../../shared/secrets/folder.ts";
import { loadCreds, loadSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { spaceFiles } from "../../../shared/secrets/settings.ts";
import { spaceFolder } from "../../../shared/secrets/store.ts";
import { Actor, type Owner, Space } from "../../../shared/tokens.ts";
import { login, pin } from "../../kit/logins.ts";

const MAIN = fileURLToPath(new URL("../../../services/cli/main.mjs", import.meta.url));
const ports = systemPorts;

export interface LiveSpace {
  readonly space: Space;
  ownerOf(subject: string): Promise<Owner>;
  /** What the exchange gives for a login, asked as the loopback gateway asks. */
  bearer(subject: string): Promise<string>;
  /** Through the callout. */
  connect(bearer: string): Promise<NatsConnection>;
  stop(): Promise<void>;
}

/** Writes the pins that tests can log in under, and starts `mesh-authority serve` for every service of the space. */
export async function serveSpace(stateDir: string, name: string, url: string): Promise<LiveSpace> {
  const space = Space.parse(name);
  await writeFile(join(stateDir, spaceFolder(space), "idp.json"), JSON.stringify({ ver: 1, pins: [pin] }));
  const place = ["--state", stateDir, "--space", name, "--servers", url];
  const children = ["custodian", "auth,exchange,callout"].map((services) =>
    spawn(process.execPath, [MAIN, "serve", ...place, "--services", services], { stdio: ["ignore", "pipe", "pipe"] }),
  );
  await Promise.all(children.map(ready));

  const secrets = await directoryStore(stateDir);
  const opened: NatsConnection[] = [];
  const creds = await loadCreds(secrets, space, "gateway_loopback");
  const key = keyPairFromSeed(creds.seed);
  const user = () => ({ jwt: creds.jwt, key });
  const connection = await connectUser({ servers: url, name: "gateway_loopback", user, reconnect: true });
  opened.push(connection);
  const { owner, actor, uid } = provisionedUser(space, "gateway_loopback", key.public);
  const caller = { owner, actor, uid };
  const inboxPrefix = `_INBOX_${key.public}`;
  const gateway = new AuthorityClient({ connection, space, caller, inboxPrefix, name: "gateway_loopback", ports });
  return {
    space,
    async ownerOf(subject) {
      const { secretB64 } = await loadSecret(secrets, space, SECRET.ownerSecret);
      return personOwner(Buffer.from(secretB64, "base64"), pin.issuer, subject);
    },
    async bearer(subject) {
      const { token } = await gateway.call(exchangeUser, { actor: Actor.parse("cli") }, { auth: login(subject) });
      return token;
    },
    async connect(token) {
      const sentinel = await spaceFiles(await openFolder(stateDir), space).sentinel();
      const nonce = newNonce(ports);
      const client = await connectUser({
        servers: url,
        name: nonce,
        user: () => ({ jwt: sentinel.jwt, key: keyPairFromSeed(sentinel.seed) }),
        token,
        inboxPrefix: `_INBOX_${nonce}`,
        reconnect: false,
      });
      opened.push(client);
      return client;
    },
    async stop() {
      await Promise.all(opened.map((each) => each.close()));
      await Promise.all(children.map(end));
    },
  };
}

/** Resolves with the line that says so; a process that ends before rejects with what it logged. */
async function ready(child: ChildProcess): Promise<void> {
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error("no output");
  let log = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const ended = once(child, "exit").then(() => Promise.reject(new Error(log)));
  ended.catch(() => {});
  await Promise.race([once(createInterface({ input: stdout }), "line"), ended]);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}
