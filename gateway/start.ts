/** Opens the faces of a gateway: each has its own NATS user, connection and port (identity §11.1). */
import type { NatsConnection } from "@nats-io/nats-core";
import type { Logger } from "pino";
import { AuthorityClient } from "../shared/client.ts";
import { keyPairFromSeed } from "../shared/credentials/nkeys.ts";
import { provisionedUser } from "../shared/credentials/users.ts";
import { textOf, unavailable } from "../shared/errors.ts";
import { type OwnedConnections, runCloseSteps } from "../shared/nats/owned.ts";
import type { Ports } from "../shared/ports.ts";
import { loadCreds } from "../shared/secrets/keys.ts";
import type { SecretStore } from "../shared/secrets/store.ts";
import type { Space } from "../shared/tokens.ts";
import type { Face } from "../shared/views.ts";
import { faceApp } from "./app.ts";
import { listen } from "./server.ts";

export interface GatewayDeps {
  readonly space: Space;
  /** Port of the loopback face; 0 takes any free one. */
  readonly port: number;
  readonly publicFace?: { readonly port: number; readonly url: string; readonly trustedProxy: boolean };
  /** A view of the faces' creds; that of a face which is not opened is never asked for. */
  readonly secrets: Pick<SecretStore, "get">;
  readonly owned: OwnedConnections;
  readonly ports: Ports;
  readonly log: Logger;
}

export interface OpenFace {
  readonly name: Face;
  readonly url: string;
  /** What the loopback face asks for, fresh at each start. */
  readonly cap?: string;
  /** Bound, not closing, and its broker is there. */
  ready(): boolean;
  /**
   * Nothing new is answered, what runs finishes within 10 s. The connection to the broker is closed by whoever owns
   * the connections. Repeatable.
   */
  close(): Promise<void>;
}

/** The loopback face, then the public one if there is one. Rejects having closed what it opened. */
export async function openFaces(deps: GatewayDeps): Promise<OpenFace[]> {
  const { port, publicFace, ports, owned, log } = deps;
  const cap = Buffer.from(ports.random(32)).toString("base64url");
  const open: OpenFace[] = [];
  try {
    open.push(await openFace(deps, { face: "loopback", port, cap, trustedProxy: false }));
    if (publicFace) open.push(await openFace(deps, { face: "public", ...publicFace }));
    return open;
  } catch (error) {
    const faces = open.map(({ name, close }) => ({ label: `face:${name}`, run: close }));
    const unwound = runCloseSteps([...faces, ...owned.closeSteps("gateway:")]);
    await unwound.catch((failure: unknown) => log.warn({ err: textOf(failure) }, "start not unwound"));
    throw error;
  }
}

interface FaceOptions {
  readonly face: Face;
  readonly port: number;
  readonly url?: string;
  readonly cap?: string;
  readonly trustedProxy: boolean;
}

async function openFace(deps: GatewayDeps, { face, port, url, cap, trustedProxy }: FaceOptions): Promise<OpenFace> {
  const { ports, log } = deps;
  const { client, connected } = await connect(deps, face);
  const own = cap === undefined ? {} : { cap };
  let draining = false;
  let bound = port;
  const app = faceApp({
    face,
    port: () => bound,
    ...own,
    trustedProxy,
    ask: ({ operation, args, auth }, deadlineMs) =>
      // Whoever asked decides whether to ask again, and holds no place here meanwhile.
      client.call(operation, args, { deadlineMs, once: true, ...(auth === undefined ? {} : { auth }) }),
    connected,
    draining: () => draining,
    ports,
    log,
  });
  const server = await listen(app, port, { face, ports, log }).catch((cause: unknown) => {
    throw unavailable(`the ${face} face cannot be bound to ${port}`, cause);
  });
  bound = server.port;
  return {
    name: face,
    url: url ?? `http://127.0.0.1:${bound}`,
    ...own,
    ready: () => !draining && connected(),
    close() {
      draining = true;
      return server.close();
    },
  };
}

/** As the face's own user, who may publish what its routes need and nothing else. */
async function connect(
  { space, secrets, owned, ports, log }: GatewayDeps,
  face: Face,
): Promise<{ client: AuthorityClient; connected: () => boolean }> {
  const name = `gateway_${face}` as const;
  const creds = await loadCreds(secrets, space, name);
  const key = keyPairFromSeed(creds.seed);
  const { owner, actor, uid } = provisionedUser(space, name, key.public);
  const user = () => ({ jwt: creds.jwt, key });
  const connection = await owned.open(`gateway:${face}`, { name, user, reconnect: true, log });
  const inboxPrefix = `_INBOX_${key.public}`;
  const client = new AuthorityClient({ connection, space, caller: { owner, actor, uid }, inboxPrefix, name, ports });
  return { client, connected: follow(connection) };
}

/** Whether the connection has a broker at this moment. */
function follow(connection: NatsConnection): () => boolean {
  let connected = true;
  void (async () => {
    for await (const { type } of connection.status()) {
      if (type === "disconnect") connected = false;
      else if (type === "reconnect") connected = true;
    }
    connected = false;
  })();
  return () => connected && !connection.isClosed();
}
