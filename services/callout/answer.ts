/** What goes back to the broker: one user JWT or one denial, signed by the callout account and sealed to the server. */
import { encodeJwt } from "../../shared/credentials/jwt.ts";
import type { KeyPair } from "../../shared/credentials/nkeys.ts";
import { seal } from "../../shared/credentials/sealed.ts";
import type { ErrorCode } from "../../shared/errors.ts";
import type { Ports } from "../../shared/ports.ts";
import type { ConnectRequest } from "./open.ts";

/** The callout account and its signing key. */
export interface AnswerKeys {
  readonly account: string;
  readonly signing: KeyPair;
}

const NONCE_BYTES = 24;

/** Admits: `jwt` is the signed user. */
export const admission = (request: ConnectRequest, jwt: string, keys: AnswerKeys, ports: Ports): Uint8Array =>
  response(request, { jwt }, keys, ports);

/** Denies. The client sees an authorization violation; the broker logs this text, our log has the rest under `ref`. */
export const denial = (
  request: ConnectRequest,
  { code, ref }: { readonly code: ErrorCode; readonly ref: string },
  keys: AnswerKeys,
  ports: Ports,
): Uint8Array => response(request, { error: `${code} ref=${ref}` }, keys, ports);

function response(
  request: ConnectRequest,
  answer: { readonly jwt: string } | { readonly error: string },
  { account, signing }: AnswerKeys,
  ports: Ports,
): Uint8Array {
  const claims = {
    sub: request.userNkey,
    aud: request.serverId,
    iat: Math.floor(ports.now() / 1_000),
    nats: { type: "authorization_response", version: 2 as const, ...answer, issuer_account: account },
  };
  return seal(request.key, Buffer.from(encodeJwt(claims, signing, ports)), ports.random(NONCE_BYTES));
}
