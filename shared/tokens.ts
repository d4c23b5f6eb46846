/**
 * The identity grammars of the wire (wire specification §1): branded strings and their parsers.
 * Parse at the edge, once; inside, a branded value has been checked.
 */
import Type, { type TUnsafe } from "typebox";
import { AuthorityError } from "./errors.ts";

declare const brand: unique symbol;
export type Brand<N extends string> = string & { readonly [brand]: N };

export interface Token<T extends string> {
  readonly name: string;
  readonly pattern: RegExp;
  /** The JSON Schema of this token, typed as the brand. */
  readonly schema: TUnsafe<T>;
  is(value: unknown): value is T;
  /** The branded value, or `bad-request` naming the token but never echoing the value. */
  parse(value: unknown): T;
}

function token<T extends string>(name: string, source: string, maxLength = 256): Token<T> {
  const pattern = new RegExp(source);
  const is = (value: unknown): value is T =>
    typeof value === "string" && value.length <= maxLength && pattern.test(value);
  return {
    name,
    pattern,
    schema: Type.Unsafe<T>({ type: "string", pattern: source, maxLength }),
    is,
    parse(value) {
      if (is(value)) return value;
      throw new AuthorityError("bad-request", `malformed ${name}`);
    },
  };
}

export type Space = Brand<"space">;
export type Owner = Brand<"owner">;
export type Actor = Brand<"actor">;
export type Principal = Brand<"principal">;
/** A lifecycle uid, an instance id or an operation id: 26 to 32 of `[a-z0-9]`. */
export type Uid = Brand<"uid">;
export type Generation = Brand<"generation">;
export type Nonce = Brand<"nonce">;
export type EnvelopeId = Brand<"envelope id">;
export type RequestId = Brand<"request id">;
export type SessionId = Brand<"session id">;
export type EndpointLabel = Brand<"endpoint">;
export type Command = Brand<"command">;
export type Digest = Brand<"digest">;
export type CredentialId = Brand<"credential id">;
export type UserNkey = Brand<"user nkey">;
export type AccountNkey = Brand<"account nkey">;
export type ServerNkey = Brand<"server nkey">;
export type RunId = Brand<"run id">;
export type TakeoverId = Brand<"takeover id">;

export const Space = token<Space>("space", "^[A-Za-z0-9_-]{1,64}$");
export const Owner = token<Owner>("owner", "^(local|[up]_[a-z2-7]{26})$");
export const PersonOwner = token<Owner>("person owner", "^u_[a-z2-7]{26}$");
export const PlatformOwner = token<Owner>("platform owner", "^p_[a-z2-7]{26}$");
export const Actor = token<Actor>("actor", "^[A-Za-z0-9_]{1,64}$");
export const Principal = token<Principal>("principal", "^(local|[up]_[a-z2-7]{26})\\.[A-Za-z0-9_]{1,64}$");
export const Uid = token<Uid>("uid", "^[a-z0-9]{26,32}$");
export const Generation = token<Generation>("issued generation", "^[0-9a-f]{32}$");
/** A nonce of a caller or connection; the form of an nkey belongs to that key's holder and is refused. */
export const Nonce = token<Nonce>("nonce", "^(?![A-Z2-7]{56}$)[A-Za-z0-9_-]{22,64}$");
export const EnvelopeId = token<EnvelopeId>("envelope id", "^[A-Za-z0-9_-]{1,64}$");
export const RequestId = token<RequestId>("requestId", "^[A-Za-z0-9_-]{22,64}$");
export const SessionId = token<SessionId>("sessionId", "^[A-Za-z0-9_-]{22,64}$");
/** The wire form of an endpoint label, in which `_` stands for `.`. */
export const EndpointLabel = token<EndpointLabel>(
  "endpoint",
  "^[a-z0-9]([a-z0-9-]*[a-z0-9])?(_[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
  64,
);
/** The endpoint under which every manager instance serves. */
export const MANAGER = EndpointLabel.parse("manager");
export const Command = token<Command>("command", "^[a-z0-9-]{1,32}$");
export const Digest = token<Digest>("digest", "^sha256:[0-9a-f]{64}$");
export const CredentialId = token<CredentialId>(
  "credential id",
  "^(sha256-[0-9a-f]{64}|root-[a-z0-9]{26,32}|h-[A-Za-z0-9_-]{22,64})$",
);
export const UserNkey = token<UserNkey>("user nkey", "^U[A-Z2-7]{55}$");
export const AccountNkey = token<AccountNkey>("account nkey", "^A[A-Z2-7]{55}$");
export const ServerNkey = token<ServerNkey>("server nkey", "^N[A-Z2-7]{55}$");
export const RunId = token<RunId>("runId", "^run-[0-9a-f]{32}$");
export const TakeoverId = token<TakeoverId>("takeoverId", "^[A-Za-z0-9_-]{1,64}$");
export const KeySegment = token<Brand<"key segment">>("key segment", "^[A-Za-z0-9_-]+$");
/** A 64-digit bare hash, as in artifact subjects and token hashes. */
export const Hex64 = token<Brand<"hex64">>("hash", "^[0-9a-f]{64}$");

/** Channel patterns of an actor's lists: NATS subject tokens under `P.chat.*.*`, `*` and a final `>` admitted. */
export const ChannelPattern = token<Brand<"channel pattern">>(
  "channel pattern",
  "^(([A-Za-z0-9_-]+|\\*)\\.)*([A-Za-z0-9_-]+|\\*|>)$",
);
/** A permission scope of an actor (identity §6). */
export const Scope = token<Brand<"scope">>("scope", "^(spawn|run|supervise|admin|role:[A-Za-z0-9_-]{1,64})$");
export const RoleName = token<Brand<"role">>("role", "^[A-Za-z0-9_-]{1,64}$");

/** One identity on a subject: owner, actor, lifecycle uid. */
export interface Triple {
  readonly owner: Owner;
  readonly actor: Actor;
  readonly uid: Uid;
}

export const principalOf = (owner: Owner, actor: Actor): Principal => `${owner}.${actor}` as Principal;

/** The dash form, used in durable and JWT names only. */
export const dashForm = (owner: Owner, actor: Actor): string => `${owner}-${actor}`;

export function splitPrincipal(principal: Principal): { owner: Owner; actor: Actor } {
  const dot = principal.indexOf(".");
  return { owner: principal.slice(0, dot) as Owner, actor: principal.slice(dot + 1) as Actor };
}

/** `_INBOX` or `_INBOX_…` as first token, two or more non-empty tokens, no wildcard, at most 256 bytes. */
export function isInbox(subject: string): boolean {
  return subject.length <= 256 && /^_INBOX(_[^.\s*>]+)?(\.[^.\s*>]+)+$/.test(subject);
}
