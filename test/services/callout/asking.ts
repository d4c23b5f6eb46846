/** A nats-server's half of the auth callout: signs and seals requests, opens and reads answers. */
import type { Sealed } from "../../../services/callout/open.ts";
import { decodeJwt, encodeJwt, type NatsClaims } from "../../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair } from "../../../shared/credentials/nkeys.ts";
import { open, seal, sharedKey } from "../../../shared/credentials/sealed.ts";
import { systemPorts } from "../../../shared/ports.ts";

export interface Asking {
  readonly token?: string;
  readonly name?: string;
  /** Over the claims a server would sign. */
  readonly claims?: Record<string, unknown>;
  /** Over the members of `nats`. */
  readonly body?: Record<string, unknown>;
  readonly signer?: KeyPair;
}

export class Server {
  readonly key = createKeyPair("server");
  readonly xkey = createKeyPair("curve");
  readonly calloutAccount: string;
  readonly #calloutXkey: string;

  constructor(calloutXkey: string, calloutAccount = createKeyPair("account").public) {
    this.#calloutXkey = calloutXkey;
    this.calloutAccount = calloutAccount;
  }

  /** A request as the broker makes it; `userNkey` is fresh unless `body` names one. */
  ask(asking: Asking = {}): Sealed & { readonly userNkey: string } {
    const userNkey = createKeyPair("user").public;
    const now = Math.floor(Date.now() / 1_000);
    const claims = {
      sub: this.calloutAccount,
      aud: "nats-authorization-request",
      iat: now,
      exp: now + 5,
      ...asking.claims,
      nats: {
        type: "authorization_request",
        version: 2 as const,
        server_id: { name: "s", host: "127.0.0.1", id: this.key.public, version: "2.15.2", xkey: this.xkey.public },
        user_nkey: userNkey,
        client_info: { host: "192.0.2.7", id: 42, kind: "Client", type: "nats" },
        connect_opts: { auth_token: asking.token, name: asking.name, protocol: 1 },
        ...asking.body,
      },
    };
    return { ...this.seal(encodeJwt(claims, asking.signer ?? this.key)), userNkey };
  }

  seal(text: string): Sealed {
    const data = seal(sharedKey(this.xkey, this.#calloutXkey), Buffer.from(text), systemPorts.random(24));
    return { xkey: this.xkey.public, data };
  }

  /** What a request holds. */
  plain(sealed: Sealed): Uint8Array | undefined {
    return open(sharedKey(this.xkey, this.#calloutXkey), sealed.data);
  }

  /** The claims of an answer; its signature is verified. */
  read(answer: Uint8Array): NatsClaims {
    const plain = open(sharedKey(this.xkey, this.#calloutXkey), answer);
    if (!plain) throw new Error("the answer does not open");
    return decodeJwt(Buffer.from(plain).toString());
  }
}
