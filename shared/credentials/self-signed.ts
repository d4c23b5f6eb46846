/** A user that `auth` or `callout` signs for itself: in memory only, short, without a row (state §5). */
import { LIFE } from "../limits.ts";
import type { User } from "../nats/connect.ts";
import type { Ports } from "../ports.ts";
import { type AccountNkey, Actor, Owner, type Space, type Uid, UserNkey } from "../tokens.ts";
import { compilePermissions } from "./compile.ts";
import { createKeyPair, type KeyPair } from "./nkeys.ts";
import { signUser } from "./sign.ts";

export interface SelfSignedOptions {
  readonly space: Space;
  readonly service: "auth" | "callout";
  /** The service's instance. */
  readonly uid: Uid;
  readonly profile: "store" | "work";
  readonly account: AccountNkey;
  /** A signing key of that account. */
  readonly signer: KeyPair;
  readonly ports: Ports;
}

/** ms of life after which it is signed anew. */
const HALF_MS = (LIFE.selfS * 1_000) / 2;

/**
 * ms after which a connection under such a user is renewed: a little later than the user is signed anew, whichever of
 * the two clocks runs faster. Else it could get the same user again, and the broker would end it before its turn.
 */
export const SELF_RENEWED_MS = HALF_MS + LIFE.skewS * 1_000;

export class SelfSigned {
  readonly #options: SelfSignedOptions;
  readonly #key: KeyPair;
  #signed: { readonly jwt: string; readonly until: number } | undefined;

  constructor(options: SelfSignedOptions) {
    this.#options = options;
    this.#key = createKeyPair("user", options.ports);
  }

  /** Signed anew once half of its life has passed, so that whoever connects with it has the other half. */
  user(): User {
    const now = this.#options.ports.now();
    if (!this.#signed || now >= this.#signed.until) {
      this.#signed = { jwt: this.#sign(Math.floor(now / 1_000)), until: now + HALF_MS };
    }
    return { jwt: this.#signed.jwt, key: this.#key };
  }

  #sign(issuedAtS: number): string {
    const { space, service, uid, profile, account, signer, ports } = this.#options;
    const key = UserNkey.parse(this.#key.public);
    const holder = { space, owner: Owner.parse("local"), actor: Actor.parse(service), uid, inbox: key };
    const permissions = compilePermissions(profile, { ...holder, service });
    const expS = issuedAtS + LIFE.selfS;
    return signUser({ key, name: profile, account, signer, permissions, holder, issuedAtS, expS }, ports);
  }
}
