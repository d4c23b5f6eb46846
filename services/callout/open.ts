/**
 * What a broker asks, or the silence that anything else gets: nothing proves then that a broker waits (identity §9.2).
 */
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { decodeJwt, type NatsClaims } from "../../shared/credentials/jwt.ts";
import { isPublicKey } from "../../shared/credentials/nkeys.ts";
import { open as openBox } from "../../shared/credentials/sealed.ts";
import { isAuthorityError } from "../../shared/errors.ts";
import { UserNkey } from "../../shared/tokens.ts";
import type { ServerKeys } from "./server-keys.ts";

/** The server's curve key, by which it sealed the request. */
export const XKEY_HEADER = "Nats-Server-Xkey";
const AUDIENCE = "nats-authorization-request";

/** A message as it was delivered. */
export interface Sealed {
  readonly xkey: string;
  readonly data: Uint8Array;
}

/** A request that a server of ours signed and sealed. */
export interface ConnectRequest {
  /** What to seal the answer with. */
  readonly key: Uint8Array;
  readonly serverId: string;
  /** The user to sign for: made by the server for this one connection. */
  readonly userNkey: UserNkey;
  /** The bearer. */
  readonly token: string | undefined;
  /** The connection's name: its nonce. */
  readonly name: string | undefined;
  readonly client: { readonly host: string | undefined; readonly id: number | undefined };
}

/** Why nothing is answered. For the log only. */
export interface Silence {
  readonly silent: string;
}

export interface OpenOptions {
  readonly keys: ServerKeys;
  /** Server nkeys; absent: every server of the operator. */
  readonly allowedServers?: readonly string[];
  /** Unix seconds. */
  readonly now: number;
}

const Optional = Type.Optional(Type.String());
/** The members read here; the broker may add others. */
const RequestBody = Type.Object({
  type: Type.Literal("authorization_request"),
  server_id: Type.Object({ id: Type.String(), xkey: Optional }),
  user_nkey: Type.String(),
  client_info: Type.Optional(Type.Object({ host: Optional, id: Type.Optional(Type.Integer({ minimum: 0 })) })),
  connect_opts: Type.Optional(Type.Object({ auth_token: Optional, name: Optional })),
});
const requestBody = Compile(RequestBody);

export function openRequest(sealed: Sealed, { keys, allowedServers, now }: OpenOptions): ConnectRequest | Silence {
  if (sealed.xkey === "") return { silent: `no ${XKEY_HEADER}` };
  const opened = unseal(sealed, keys);
  if (!opened) return { silent: "the box does not open" };
  const claims = claimsOf(opened.plain);
  if (!claims) return { silent: "no signed request of a server" };
  if (!requestBody.Check(claims.nats) || claims.aud !== AUDIENCE) return { silent: "another kind of request" };
  const {
    server_id: server,
    user_nkey: userNkey,
    client_info: client,
    connect_opts: connect,
  } = claims.nats as Static<typeof RequestBody>;
  if (claims.iss !== server.id) return { silent: "signed by another server than it names" };
  if (server.xkey !== sealed.xkey) return { silent: "sealed under another key than it names" };
  if (allowedServers && !allowedServers.includes(server.id)) return { silent: "a server that is not allowed" };
  if (!UserNkey.is(userNkey) || !isPublicKey(userNkey, "user")) return { silent: "names no user" };
  if (claims.exp !== undefined && claims.exp < now) return { silent: "the server has stopped waiting" };
  return {
    key: opened.key,
    serverId: server.id,
    userNkey,
    token: connect?.auth_token,
    name: connect?.name,
    client: { host: client?.host, id: client?.id },
  };
}

function unseal({ xkey, data }: Sealed, keys: ServerKeys): { key: Uint8Array; plain: Uint8Array } | undefined {
  const key = keys.get(xkey);
  const plain = key && openBox(key, data);
  if (!key || !plain) return undefined;
  keys.keep(xkey, key);
  return { key, plain };
}

/** `decodeJwt` asks that an `authorization_request` be signed by a server key. */
function claimsOf(plain: Uint8Array): NatsClaims | undefined {
  try {
    return decodeJwt(Buffer.from(plain).toString("latin1"));
  } catch (error) {
    if (isAuthorityError(error, "unauthenticated")) return undefined;
    throw error;
  }
}
