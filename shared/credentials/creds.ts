/** The creds file of the NATS tools: one user JWT and its seed. */
import { AuthorityError } from "../errors.ts";
import { decodeJwt } from "./jwt.ts";
import { keyPairFromSeed } from "./nkeys.ts";

export interface Creds {
  readonly jwt: string;
  readonly seed: string;
}

export function formatCreds(jwt: string, seed: string): string {
  return `-----BEGIN NATS USER JWT-----
${jwt}
------END NATS USER JWT------

************************* IMPORTANT *************************
NKEY Seed printed below can be used to sign and prove identity.
NKEYs are sensitive and should be treated as secrets.

-----BEGIN USER NKEY SEED-----
${seed}
------END USER NKEY SEED------

*************************************************************
`;
}

/**
 * The user of a creds file. Exactly one of each block, a good signature and a seed that is the JWT's subject,
 * else `bad-request`: half a credential is found where it is read, not where the broker refuses it.
 */
export function parseCreds(text: string): Creds {
  const jwt = block(text, "NATS USER JWT");
  const seed = block(text, "USER NKEY SEED");
  try {
    const { sub, nats } = decodeJwt(jwt);
    if (nats.type === "user" && keyPairFromSeed(seed).public === sub) return { jwt, seed };
  } catch (cause) {
    throw new AuthorityError("bad-request", "malformed creds", { cause });
  }
  throw new AuthorityError("bad-request", "malformed creds", { reason: "the seed is not of the JWT's user" });
}

function block(text: string, name: string): string {
  const found = [
    ...text.matchAll(new RegExp(`^-{3,}BEGIN ${name}-{3,}\\s*\\n([^\\s-]\\S*)\\s*\\n-{3,}END ${name}-{3,}\\s*$`, "gm")),
  ];
  const content = found.length === 1 ? found[0]?.[1] : undefined;
  if (content === undefined) throw new AuthorityError("bad-request", "malformed creds", { reason: `not one ${name}` });
  return content;
}
