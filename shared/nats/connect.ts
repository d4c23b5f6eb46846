/** One way to connect: an nkey user, the server's nonce signed natively, pings that notice a dead broker. */
import { type ConnectionOptions, connect, errors, type NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { KeyPair } from "../credentials/nkeys.ts";
import { AuthorityError, internal, textOf, unavailable } from "../errors.ts";
import { CONNECTION } from "../limits.ts";
import { ServerNkey, UserNkey } from "../tokens.ts";

export interface User {
  readonly jwt: string;
  readonly key: KeyPair;
}

export interface ConnectUserOptions {
  readonly servers: string | string[];
  readonly tlsRequired?: boolean;
  /** Shown by the broker's monitoring. A connection under a bearer has its nonce here (identity §9.1). */
  readonly name: string;
  /** Asked at each connect and reconnect, so a renewed JWT is used. The key stays, as the inbox follows from it. */
  readonly user: () => User;
  /** A bearer, beside the sentinel user; asked anew each time if a function. */
  readonly token?: string | (() => string);
  /** `_INBOX_<nkey>` unless given; a connection under a bearer has `_INBOX_<nonce>`. */
  readonly inboxPrefix?: string;
  /**
   * True: for ever, authentication errors included, since the user may have been renewed meanwhile.
   * False: the first loss ends the connection, and `closed()` resolves.
   */
  readonly reconnect: boolean;
  readonly log?: Pick<Logger, "debug" | "info" | "warn">;
}

/** What proves a connection gone: it is one socket of one start of one server (state §3). */
export interface Tuple {
  readonly serverId: ServerNkey;
  readonly cid: number;
  readonly userNkey: UserNkey;
}

/** `unauthenticated` if the broker refuses the user, else `unavailable`. */
export async function connectUser(options: ConnectUserOptions): Promise<NatsConnection> {
  const { user, token } = options;
  const connectOptions: ConnectionOptions = {
    servers: options.servers,
    name: options.name,
    inboxPrefix: options.inboxPrefix ?? `_INBOX_${user().key.public}`,
    authenticator: (nonce) => ({ ...signed(user(), nonce ?? ""), ...bearer(token) }),
    timeout: CONNECTION.connectMs,
    pingInterval: CONNECTION.pingIntervalMs,
    maxPingOut: CONNECTION.maxPingOut,
    reconnect: options.reconnect,
    maxReconnectAttempts: -1,
    reconnectTimeWait: CONNECTION.reconnectMs,
    reconnectJitter: CONNECTION.reconnectJitterMs,
    reconnectJitterTLS: CONNECTION.reconnectJitterMs,
    ignoreAuthErrorAbort: options.reconnect,
    noAsyncTraces: true,
    ...(options.tlsRequired ? { tls: {} } : {}),
  };
  const connection = await connect(connectOptions).catch((cause: unknown) => {
    const reason = `connect ${options.name}: ${textOf(cause)}`;
    if (!isRefusal(cause)) throw unavailable(reason, cause);
    throw new AuthorityError("unauthenticated", "the broker refused the credential", { reason, cause });
  });
  if (options.log) void logStatus(connection, options.name, options.log);
  return connection;
}

/** The tuple of a connection as it is now; it changes with each reconnect. */
export function tupleOf(connection: NatsConnection, userNkey: string): Tuple {
  const { server_id: serverId, client_id: cid } = connection.info ?? {};
  if (!ServerNkey.is(serverId) || !UserNkey.is(userNkey) || cid === undefined)
    throw internal("INFO names no connection");
  return { serverId, cid, userNkey };
}

function signed({ jwt, key }: User, nonce: string): { jwt: string; sig: string } {
  return { jwt, sig: Buffer.from(key.sign(Buffer.from(nonce))).toString("base64url") };
}

function bearer(token: ConnectUserOptions["token"]): { auth_token?: string } {
  if (token === undefined) return {};
  return { auth_token: typeof token === "function" ? token() : token };
}

function isRefusal(error: unknown): boolean {
  return error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError;
}

/** Ends with the connection. */
async function logStatus(
  connection: NatsConnection,
  name: string,
  log: Pick<Logger, "debug" | "info" | "warn">,
): Promise<void> {
  for await (const status of connection.status()) {
    const fields = { connection: name, event: status.type };
    if (status.type === "error") log.warn({ ...fields, error: textOf(status.error) }, "connection error");
    else if (status.type === "disconnect" || status.type === "staleConnection") log.warn(fields, "connection lost");
    else if (status.type === "reconnect" || status.type === "close") log.info(fields, "connection changed");
    else log.debug(fields, "connection event");
  }
}
