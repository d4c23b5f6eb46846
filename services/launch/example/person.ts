/** A person's client: log in, exchange the login for a bearer, connect to the broker with it (README, "Log in"). */
import type { NatsConnection } from "@nats-io/nats-core";
import { decodeJwt } from "jose";
import { parseCreds } from "../../../shared/credentials/creds.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { connectUser } from "../../../shared/nats/connect.ts";
import { newNonce, type Ports } from "../../../shared/ports.ts";
import type { Actor, Nonce, Owner, Triple, Uid } from "../../../shared/tokens.ts";
import { post } from "./http.ts";

/** What a client is told before its first login: `GET /.well-known/cotal-mesh` (identity §10). */
export interface Bundle {
  readonly space: string;
  readonly server: string;
  readonly sentinelCreds: string;
  readonly userAuth: { readonly endpoints: { readonly url: string; readonly managerAuthorityUrl: string } };
}

export interface Exchanged {
  readonly token: string;
  readonly owner: Owner;
  readonly exp: number;
}

export interface Wish {
  readonly actor: Actor;
  readonly view?: "manager-caller";
  readonly managerInstanceId?: Uid;
}

/** A connection that the auth callout let in. */
export interface Connected {
  readonly connection: NatsConnection;
  /** Owner, actor and uid that this connection may put on a subject. */
  readonly caller: Triple;
  readonly nonce: Nonce;
}

export class Person {
  readonly bundle: Bundle;
  readonly #idToken: () => Promise<string>;
  readonly #ports: Ports;

  /** `idToken` logs in at the identity provider. */
  constructor(bundle: Bundle, idToken: () => Promise<string>, ports: Ports) {
    this.bundle = bundle;
    this.#idToken = idToken;
    this.#ports = ports;
  }

  idToken(): Promise<string> {
    return this.#idToken();
  }

  /** `POST /exchange`: an identity token becomes a bearer. */
  async exchange(wish: Wish): Promise<Exchanged> {
    return post(`${this.bundle.userAuth.endpoints.url}/exchange`, { idpToken: await this.#idToken(), ...wish });
  }

  /** Sentinel credentials, the bearer beside them, a nonce as the connection's name and inbox. */
  async connect(token: string): Promise<Connected> {
    const { jwt, seed } = parseCreds(this.bundle.sentinelCreds);
    const key = keyPairFromSeed(seed);
    const nonce = newNonce(this.#ports);
    const connection = await connectUser({
      servers: this.bundle.server,
      name: nonce,
      inboxPrefix: `_INBOX_${nonce}`,
      user: () => ({ jwt, key }),
      token,
      reconnect: false,
    });
    const { act } = decodeJwt<{ act: { owner: Owner; actor: Actor; lifecycleUid: Uid } }>(token);
    return { connection, nonce, caller: { owner: act.owner, actor: act.actor, uid: act.lifecycleUid } };
  }
}
