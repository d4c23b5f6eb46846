/**
 * NATS JWTs, version 2, signed and verified natively (architecture §7).
 *
 * ```ts
 * const jwt = encodeJwt(userClaims({ subject, name, issuerAccount, permissions, tags, iat }), signingKey);
 * const { sub, nats } = decodeJwt(jwt);
 * ```
 */
import { parseStrict } from "../canonical.ts";
import { AuthorityError } from "../errors.ts";
import { CREDENTIAL, WIRE } from "../limits.ts";
import { type Ports, systemPorts } from "../ports.ts";
import { isPublicKey, type KeyKind, type KeyPair, verify } from "./nkeys.ts";

const HEADER = Buffer.from(JSON.stringify({ typ: "JWT", alg: "ed25519-nkey" })).toString("base64url");
/** No two mints share an id (state §5). */
const JTI_BYTES = 16;

/** Per claim type: what the issuer and the subject must be. Everything else is refused. */
const TYPES: Readonly<Record<string, { issuer: KeyKind; subject: KeyKind }>> = {
  operator: { issuer: "operator", subject: "operator" },
  account: { issuer: "operator", subject: "account" },
  user: { issuer: "account", subject: "user" },
  /** The subject is the account that runs the callout; the user to sign for is `nats.user_nkey`. */
  authorization_request: { issuer: "server", subject: "account" },
  authorization_response: { issuer: "account", subject: "user" },
};

/** The part of a claim that only NATS knows. */
export interface NatsBody {
  readonly type: string;
  readonly version: 2;
  readonly [member: string]: unknown;
}

/** What is to be signed. Times are Unix seconds; `iss` is the signer's, `jti` 128 random bits unless given. */
export interface ClaimsDraft {
  readonly sub: string;
  readonly iat: number;
  readonly name?: string;
  readonly aud?: string;
  readonly exp?: number;
  readonly jti?: string;
  readonly nats: NatsBody;
}

export interface NatsClaims extends ClaimsDraft {
  readonly iss: string;
  readonly jti: string;
  readonly nbf?: number;
}

export function encodeJwt(claims: ClaimsDraft, signer: KeyPair, ports: Pick<Ports, "random"> = systemPorts): string {
  const jti = Buffer.from(ports.random(JTI_BYTES)).toString("base64url");
  const payload = { jti, ...claims, iss: signer.public };
  const signed = `${HEADER}.${Buffer.from(JSON.stringify(payload)).toString("base64url")}`;
  return `${signed}.${Buffer.from(signer.sign(Buffer.from(signed))).toString("base64url")}`;
}

/**
 * The claims of a JWT whose signature is good under its own `iss` and whose keys are of the kinds its type asks for.
 * Whether that issuer is trusted, and `exp`, are the caller's to check. Anything else is `unauthenticated`.
 */
export function decodeJwt(text: string): NatsClaims {
  if (text.length > CREDENTIAL.maxReadJwt) throw refused("too long");
  const [header, payload, signature, ...rest] = text.split(".");
  if (header === undefined || payload === undefined || signature === undefined || rest.length > 0) {
    throw refused("not three parts");
  }
  if (!isHeader(parsePart(header))) throw refused("another header");
  const claims = parsePart(payload);
  if (!isClaims(claims)) throw refused("malformed claims");
  const kinds = Object.hasOwn(TYPES, claims.nats.type) ? TYPES[claims.nats.type] : undefined;
  if (!kinds || !isPublicKey(claims.iss, kinds.issuer) || !isPublicKey(claims.sub, kinds.subject)) {
    throw refused("type, issuer and subject do not fit");
  }
  if (!verify(claims.iss, Buffer.from(`${header}.${payload}`), base64url(signature))) throw refused("bad signature");
  return claims;
}

export interface SubjectRules {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** What a user may do. `resp` lets it answer each request `max` times within `ttl` nanoseconds. */
export interface Permissions {
  readonly pub: SubjectRules;
  readonly sub: SubjectRules;
  readonly resp?: { readonly max: number; readonly ttl: number };
}

/** The tags by which a sweep attributes a user (state §5). */
export function identityTags(owner: string, actor: string, uid: string): string[] {
  return [`owner:${owner}`, `actor:${actor}`, `principal:${owner}.${actor}`, `uid:${uid}`];
}

export interface UserOptions {
  readonly subject: string;
  readonly name: string;
  /** The account the user is of, when a signing key of it signs. */
  readonly issuerAccount: string;
  readonly permissions: Permissions;
  readonly tags: readonly string[];
  readonly iat: number;
  /** Absent: does not expire. */
  readonly exp?: number;
  readonly connectionTypes?: readonly string[];
}

export function userClaims(user: UserOptions): ClaimsDraft {
  const { pub, sub, resp } = user.permissions;
  return {
    sub: user.subject,
    name: user.name,
    iat: user.iat,
    ...(user.exp === undefined ? {} : { exp: user.exp }),
    nats: {
      type: "user",
      version: 2,
      issuer_account: user.issuerAccount,
      tags: user.tags,
      pub: subjectRules(pub),
      sub: subjectRules(sub),
      ...(resp === undefined ? {} : { resp }),
      subs: -1,
      data: -1,
      payload: -1,
      ...(user.connectionTypes === undefined ? {} : { allowed_connection_types: user.connectionTypes }),
    },
  };
}

/** To the broker an empty allow list means everything; here it means nothing. */
function subjectRules({ allow, deny }: SubjectRules): SubjectRules {
  return allow.length === 0 ? { allow: [], deny: [">"] } : { allow, deny };
}

export interface AccountOptions {
  readonly subject: string;
  readonly name: string;
  readonly signingKeys: readonly string[];
  /** `unset` is for the system account alone: with JetStream limits of any value the broker does not start. */
  readonly jetstream: "unlimited" | "none" | "unset";
  /** Users that are not sent to the callout, the accounts it may place others in, and its curve key. */
  readonly authorization?: {
    readonly authUsers: readonly string[];
    readonly allowedAccounts: readonly string[];
    readonly xkey: string;
  };
  /** User nkey → Unix seconds: JWTs of that user issued at or before are refused. */
  readonly revocations?: Readonly<Record<string, number>>;
  readonly iat: number;
}

/** Every limit is written out: to the broker a missing one is 0 (identity §1.4). */
export const ACCOUNT_LIMITS = {
  subs: -1,
  data: -1,
  payload: -1,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
} as const;

const jetstreamLimits = (value: -1 | 0) => ({
  mem_storage: value,
  disk_storage: value,
  streams: value,
  consumer: value,
  max_ack_pending: -1,
  mem_max_stream_bytes: -1,
  disk_max_stream_bytes: -1,
  max_bytes_required: false,
});

export const JETSTREAM_LIMITS = { unlimited: jetstreamLimits(-1), none: jetstreamLimits(0), unset: {} } as const;

export function accountClaims(account: AccountOptions): ClaimsDraft {
  const { authorization, revocations } = account;
  return {
    sub: account.subject,
    name: account.name,
    iat: account.iat,
    nats: {
      type: "account",
      version: 2,
      limits: { ...ACCOUNT_LIMITS, ...JETSTREAM_LIMITS[account.jetstream] },
      signing_keys: account.signingKeys,
      ...(revocations === undefined ? {} : { revocations }),
      ...(authorization === undefined
        ? {}
        : {
            authorization: {
              auth_users: authorization.authUsers,
              allowed_accounts: authorization.allowedAccounts,
              xkey: authorization.xkey,
            },
          }),
    },
  };
}

export interface OperatorOptions {
  readonly subject: string;
  readonly name: string;
  readonly systemAccount: string;
  readonly iat: number;
}

export function operatorClaims({ subject, name, systemAccount, iat }: OperatorOptions): ClaimsDraft {
  return { sub: subject, name, iat, nats: { type: "operator", version: 2, system_account: systemAccount } };
}

function isHeader(value: unknown): boolean {
  if (!isRecord(value) || Object.keys(value).length !== 2) return false;
  return value.typ === "JWT" && value.alg === "ed25519-nkey";
}

function isClaims(value: unknown): value is NatsClaims {
  if (!isRecord(value) || !isRecord(value.nats)) return false;
  const optional = (member: string, type: (value: unknown) => boolean) =>
    value[member] === undefined || type(value[member]);
  const isString = (member: unknown) => typeof member === "string";
  return (
    [value.sub, value.iss, value.jti, value.nats.type].every(isString) &&
    Number.isSafeInteger(value.iat) &&
    ["exp", "nbf"].every((member) => optional(member, Number.isSafeInteger)) &&
    ["name", "aud"].every((member) => optional(member, isString)) &&
    value.nats.version === 2
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parsePart(part: string): unknown {
  try {
    return parseStrict(base64url(part), { maxBytes: CREDENTIAL.maxReadJwt, maxDepth: WIRE.maxDepth });
  } catch (cause) {
    throw refused("a part is not strict JSON", cause);
  }
}

/** Bytes of unpadded base64url in its one canonical spelling. */
function base64url(part: string): Uint8Array {
  const bytes = Buffer.from(part, "base64url");
  if (bytes.toString("base64url") !== part) throw refused("not base64url");
  return bytes;
}

function refused(reason: string, cause?: unknown): AuthorityError {
  return new AuthorityError("unauthenticated", "malformed JWT", { reason: `JWT: ${reason}`, cause });
}
