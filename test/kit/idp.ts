/** A real OpenID provider on loopback, and a person logging in to it through its pages. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from "jose";
import { Provider } from "oidc-provider";
import type { IdpPin, PinAlgorithm } from "../../shared/secrets/pins.ts";

const AUDIENCE = "mesh";
const REDIRECT = "http://127.0.0.1:9/callback";

export interface OidcProvider {
  readonly pin: IdpPin;
  /** An ID token from an authorization-code login with PKCE. */
  login(subject: string): Promise<string>;
  /** Signs with a fresh key from now on; the former stays published unless `forget`. */
  rotate(forget?: boolean): Promise<void>;
  /** How often the key set was asked for. */
  readonly jwksRequests: () => number;
  stop(): Promise<void>;
}

export async function startOidcProvider(alg: PinAlgorithm = "EdDSA"): Promise<OidcProvider> {
  let handle: (incoming: IncomingMessage, outgoing: ServerResponse) => unknown = () => {};
  let jwksRequests = 0;
  const server = createServer((incoming, outgoing) => {
    if (incoming.url === "/jwks") jwksRequests += 1;
    void handle(incoming, outgoing);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port was bound");
  const issuer = `http://127.0.0.1:${address.port}`;
  let keys: JWK[] = [];
  const rotate = async (forget = false): Promise<void> => {
    keys = [await newKey(alg), ...(forget ? [] : keys)];
    handle = new Provider(issuer, configuration(alg, keys)).callback();
  };
  await rotate();
  return {
    pin: { url: issuer, issuer, audience: AUDIENCE, jwksUri: `${issuer}/jwks`, algorithms: [alg] },
    login: (subject) => login(issuer, subject),
    rotate,
    jwksRequests: () => jwksRequests,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function newKey(alg: PinAlgorithm): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, alg, use: "sig", kid: await calculateJwkThumbprint(jwk) };
}

const configuration = (alg: PinAlgorithm, keys: readonly JWK[]) => ({
  clients: [
    {
      client_id: AUDIENCE,
      redirect_uris: [REDIRECT],
      application_type: "native",
      token_endpoint_auth_method: "none",
      id_token_signed_response_alg: alg,
    },
  ],
  jwks: { keys },
  cookies: { keys: ["for tests alone"] },
  findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
  ttl: { IdToken: 600, AccessToken: 600, Interaction: 600, Session: 600, Grant: 600 },
});

/** Walks the pages as a browser would: login form, consent form, code, token. */
async function login(issuer: string, subject: string): Promise<string> {
  const verifier = randomBytes(32).toString("base64url");
  const query = new URLSearchParams({
    client_id: AUDIENCE,
    redirect_uri: REDIRECT,
    response_type: "code",
    scope: "openid",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  const browser = new Browser();
  let page = await browser.get(`${issuer}/auth?${query}`);
  page = await browser.post(page, { prompt: "login", login: subject, password: "any" });
  page = await browser.post(page, { prompt: "consent" });
  const code = new URL(page).searchParams.get("code");
  if (code === null) throw new Error("the login ended without a code");
  const response = await fetch(`${issuer}/token`, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "authorization_code",
      client_id: AUDIENCE,
      redirect_uri: REDIRECT,
      code,
      code_verifier: verifier,
    }),
  });
  const answer: { id_token?: string } = JSON.parse(await response.text());
  if (answer.id_token === undefined) throw new Error(`no ID token: ${response.status}`);
  return answer.id_token;
}

/** Follows redirects with its cookies, up to a page or to the client's own address. */
class Browser {
  readonly #cookies = new Map<string, string>();

  async get(url: string): Promise<string> {
    return this.#follow(url, await this.#send(url, {}));
  }

  async post(url: string, form: Record<string, string>): Promise<string> {
    return this.#follow(url, await this.#send(url, { method: "POST", body: new URLSearchParams(form) }));
  }

  async #follow(url: string, response: Response): Promise<string> {
    const location = response.headers.get("location");
    await response.arrayBuffer();
    if (location === null) return url;
    const next = new URL(location, url).href;
    return next.startsWith(REDIRECT) ? next : this.get(next);
  }

  async #send(url: string, init: RequestInit): Promise<Response> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { ...init, redirect: "manual", headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [pair = ""] = set.split(";");
      const at = pair.indexOf("=");
      this.#cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return response;
  }
}
