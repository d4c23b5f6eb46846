/** Whose a connection is (lifecycles §2.3). */
import { parseStrict } from "../../shared/canonical.ts";
import { CREDENTIAL, WIRE } from "../../shared/limits.ts";
import { Actor, Owner, Principal, principalOf, UserNkey } from "../../shared/tokens.ts";

/** What CONNZ says of a connection's user. */
export interface Presented {
  /** Of a connection that presented it; the broker checked it. */
  readonly jwt?: string;
  /** Chosen by the client where there is a `jwt`, else the name that the callout signed. */
  readonly authorizedUser?: string;
}

export interface Attribution {
  readonly principal?: Principal;
  /** Not shown of a connection that the callout admitted. */
  readonly userNkey?: UserNkey;
  /** Why there is no principal. */
  readonly fault?: string;
}

export function attribute({ jwt, authorizedUser }: Presented): Attribution {
  return jwt === undefined ? byCalloutName(authorizedUser ?? "") : byTag(jwt);
}

/** `<owner>-<actor>`, the dash form: neither grammar admits a dash. */
function byCalloutName(name: string): Attribution {
  const [owner, actor, ...rest] = name.split("-");
  if (!Owner.is(owner) || !Actor.is(actor) || rest.length > 0) return { fault: "its user name is no principal" };
  return { principal: principalOf(owner, actor) };
}

const TAG = "principal:";

function byTag(jwt: string): Attribution {
  const claims = payloadOf(jwt);
  if (!UserNkey.is(claims?.sub)) return { fault: "its JWT is unreadable" };
  const userNkey = claims.sub;
  const tags = isRecord(claims.nats) && Array.isArray(claims.nats.tags) ? claims.nats.tags : [];
  const principals = tags.filter((tag) => typeof tag === "string" && tag.startsWith(TAG));
  if (principals.length === 0) return { userNkey, fault: "it has no principal tag" };
  if (principals.length > 1) return { userNkey, fault: "it has several principal tags" };
  const principal = String(principals[0]).slice(TAG.length);
  return Principal.is(principal) ? { principal, userNkey } : { userNkey, fault: "its principal tag is malformed" };
}

function payloadOf(jwt: string): Record<string, unknown> | undefined {
  const [, payload, ...rest] = jwt.split(".");
  if (payload === undefined || rest.length !== 1) return undefined;
  try {
    const limits = { maxBytes: CREDENTIAL.maxReadJwt, maxDepth: WIRE.maxDepth };
    const claims = parseStrict(Buffer.from(payload, "base64url"), limits);
    return isRecord(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
