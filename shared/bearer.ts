/** The token that stands between a login and a broker connection: its closed claims, signing, validation (identity §4). */
import { type KeyObject, verify } from "node:crypto";
import { CompactSign, type CryptoKey } from "jose";
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { SafeInteger } from "./envelope.ts";
import { AuthorityError, internal } from "./errors.ts";
import { BadToken, takeApart, unauthenticated } from "./jws.ts";
import { BEARER, LIFE } from "./limits.ts";
import type { Ports } from "./ports.ts";
import { Actor, CredentialId, EndpointLabel, Hex64, Owner, Principal, Scope, SessionId, Space, Uid } from "./tokens.ts";
import { bearerCapS, type Pairing, ViewSchema, viewRule } from "./views.ts";

const closed = { additionalProperties: false } as const;
const Scopes = Type.Array(Scope.schema, { maxItems: BEARER.maxScopes });
const ISSUER = "^urn:cotal:auth:[A-Za-z0-9_.-]{1,128}$";

const Act = Type.Object(
  {
    owner: Owner.schema,
    actor: Actor.schema,
    scope: Scopes,
    /** The actor row's: the one principal that spawned it. */
    parent: Type.Optional(Principal.schema),
    lifecycleUid: Uid.schema,
    /** The root's. */
    credentialId: CredentialId.schema,
    view: Type.Optional(ViewSchema),
    managerInstanceId: Type.Optional(Uid.schema),
    session: Type.Optional(
      Type.Object(
        { endpoint: EndpointLabel.schema, sessionId: SessionId.schema, epoch: SafeInteger(), exp: SafeInteger() },
        closed,
      ),
    ),
    transferWriter: Type.Optional(Type.Object({ instanceId: Uid.schema, hex: Hex64.schema }, closed)),
  },
  closed,
);

const BearerSchema = Type.Object(
  {
    iss: Type.String({ pattern: ISSUER }),
    aud: Type.Union([Space.schema, Type.Array(Space.schema, { minItems: 1, maxItems: 1 })]),
    sub: Owner.schema,
    ver: Type.Literal(1),
    /** Whole seconds, like `nbf` and `exp`. */
    iat: SafeInteger(),
    nbf: SafeInteger(),
    exp: SafeInteger(),
    scope: Scopes,
    act: Act,
  },
  closed,
);

export type Bearer = Static<typeof BearerSchema>;
export type BearerAct = Bearer["act"];

const bearerCheck = Compile(BearerSchema);
const PAIRINGS: readonly Pairing[] = ["managerInstanceId", "session", "transferWriter"];

export interface SigningKey {
  /** RFC 7638 thumbprint. */
  readonly kid: string;
  readonly privateKey: CryptoKey;
}

export interface BearerRequest {
  readonly issuer: string;
  readonly space: Space;
  readonly act: BearerAct;
  /** Seconds asked for; the cap of the view stands in any case. */
  readonly ttlS?: number;
  /** Whole Unix seconds that the bearer must not outlive: of the proof, the session, the root. */
  readonly notAfter: readonly number[];
}

/**
 * Signs at this moment: the life left is computed here and nowhere earlier, so that no delay before it lets a bearer
 * outlive what it stands on. `expired` with less than five seconds left.
 */
export async function signBearer(
  request: BearerRequest,
  key: SigningKey,
  ports: Pick<Ports, "now">,
): Promise<{ readonly token: string; readonly exp: number }> {
  const { issuer, space, act, notAfter } = request;
  const cap = bearerCapS(act.view, act.parent !== undefined);
  const bounds = [request.ttlS ?? cap, ...notAfter];
  if (!bounds.every(Number.isSafeInteger)) throw internal("a bound of a bearer is no integer"); // NaN bounds nothing
  const iat = seconds(ports);
  const exp = Math.min(iat + Math.min(request.ttlS ?? cap, cap), ...notAfter);
  if (exp - iat < LIFE.minLeftS) throw new AuthorityError("expired", "too little of the proof's life is left");
  const { owner, scope } = act;
  const claims: Bearer = { iss: issuer, aud: space, sub: owner, ver: 1, iat, nbf: iat, exp, scope, act };
  if (!bearerCheck.Check(claims)) throw internal("the claims to sign are no bearer");
  const token = await new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: "EdDSA", kid: key.kid, typ: "JWT" })
    .sign(key.privateKey);
  return { token, exp };
}

/** What one `kid` stands for, as of now. */
export interface VerificationKey {
  readonly issuer: string;
  readonly publicKey: KeyObject;
}

/** The key of a `kid`, `undefined` for one that is not trusted; throws `unavailable` if nothing can be said. */
export type KeyOf = (kid: string) => Promise<VerificationKey | undefined>;

/** The claims of a valid bearer for this space; `unauthenticated`, or `expired` once its `exp` has passed. */
export async function validateBearer(
  token: string,
  space: Space,
  keyOf: KeyOf,
  ports: Pick<Ports, "now">,
): Promise<Bearer> {
  try {
    return await validate(token, space, keyOf, ports);
  } catch (error) {
    throw error instanceof BadToken ? unauthenticated("bearer", error) : error;
  }
}

/** In this order, the first failure ends it (identity §4). */
async function validate(token: string, space: Space, keyOf: KeyOf, ports: Pick<Ports, "now">): Promise<Bearer> {
  const jws = takeApart(token, BEARER.maxToken);
  const kid = closedHeader(jws.header);
  const key = await keyOf(kid);
  if (!key) throw new BadToken("unknown kid");
  if (!jws.signedBy((data, signature) => verify(null, data, key.publicKey, signature))) throw new BadToken("signature");
  const claims = jws.payload();
  forThisSpace(claims, key.issuer, space);
  timely(claims, seconds(ports));
  if (!bearerCheck.Check(claims)) throw new BadToken("claims: not the closed shape");
  const bearer: Bearer = claims;
  const { act } = bearer;
  if (act.owner !== bearer.sub) throw new BadToken("act.owner is not sub");
  if (!equal(bearer.scope, act.scope)) throw new BadToken("scope is not act.scope");
  if (!isPaired(act)) throw new BadToken("a claim without its view, or the reverse");
  if (act.parent !== undefined && !viewRule(act.view).managed) throw new BadToken("not a view of a managed actor");
  return bearer;
}

function closedHeader(header: Record<string, unknown>): string {
  const { alg, kid, typ, ...rest } = header;
  const exact = alg === "EdDSA" && typ === "JWT" && typeof kid === "string" && Object.keys(rest).length === 0;
  if (!exact) throw new BadToken("header: not the closed shape");
  return kid;
}

function forThisSpace({ ver, iss, aud }: Record<string, unknown>, issuer: string, space: Space): void {
  if (ver !== 1) throw new BadToken("ver");
  if (iss !== issuer) throw new BadToken("iss");
  const audience = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  if (audience !== space) throw new BadToken("aud");
}

/** The cap is asked of claims not yet checked: whatever they are, the shorter one binds a managed actor or transfer. */
function timely({ iat, nbf, exp, act }: Record<string, unknown>, now: number): void {
  if (!isInteger(iat) || !isInteger(nbf) || !isInteger(exp)) throw new BadToken("iat, nbf, exp: not integers");
  if (iat > now + LIFE.skewS || nbf > now + LIFE.skewS) throw new BadToken("not valid yet");
  if (exp <= now - LIFE.skewS) throw new AuthorityError("expired", "the bearer has expired");
  const cap = capOf(act);
  if (exp - iat > cap || exp - now > cap + LIFE.skewS) throw new BadToken("lives longer than its cap");
}

function capOf(act: unknown): number {
  const { view, parent } = typeof act === "object" && act !== null ? (act as Record<string, unknown>) : {};
  return bearerCapS(view === "transfer-writer" ? view : undefined, parent !== undefined);
}

/** A pairing claim stands with its view, and the view with its claim. */
function isPaired(act: Pick<BearerAct, "view" | Pairing>): boolean {
  const { pairing } = viewRule(act.view);
  return PAIRINGS.every((name) => (act[name] !== undefined) === (name === pairing));
}

const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);
const equal = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((scope, at) => scope === other[at]);
const seconds = (ports: Pick<Ports, "now">): number => Math.floor(ports.now() / 1_000);
