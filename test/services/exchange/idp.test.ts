import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { IdpVerifier } from "../../../services/exchange/idp.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import type { IdpPin } from "../../../shared/secrets/pins.ts";
import { testPorts } from "../../kit/clock.ts";
import { type OidcProvider, startOidcProvider } from "../../kit/idp.ts";

const ed = generateKeyPairSync("ed25519");
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const weak = generateKeyPairSync("rsa", { modulusLength: 1024 });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
type Jwk = NonNullable<IdpPin["keys"]>[number];
const jwk = (pair: typeof ed, more: object = {}): Jwk =>
  ({ ...pair.publicKey.export({ format: "jwk" }), ...more }) as Jwk;

const issuer = "https://idp.example";
const pin = (more: Partial<IdpPin> = {}): IdpPin => ({
  url: issuer,
  issuer,
  audience: "mesh",
  keys: [jwk(ed, { kid: "ed" }), jwk(rsa, { kid: "rsa" }), jwk(ec, { kid: "ec" }), jwk(weak, { kid: "weak" })],
  ...more,
});

const ports = testPorts();
const now = Math.floor(ports.now() / 1_000);
const claims = (changes: object = {}): object => ({
  iss: issuer,
  aud: "mesh",
  sub: "alice",
  exp: now + 300,
  iat: now,
  ...changes,
});

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
function token(payload: object = claims(), header: object = { alg: "EdDSA", kid: "ed" }, pair = ed): string {
  const text = `${encode(header)}.${encode(payload)}`;
  const hash = pair === ed ? null : "sha256";
  const signature = sign(hash, Buffer.from(text), { key: pair.privateKey, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

async function refusal(work: Promise<unknown>): Promise<string | undefined> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AuthorityError)) throw new Error("not refused", { cause: error });
  if (error.code !== "unauthenticated") return error.code;
  expect(error.message).toBe("the proof of login is not valid");
  return error.reason;
}

describe("a proof of login", () => {
  const verify = (text: string, pins = [pin()]) => new IdpVerifier(pins, ports).verify(text);
  const all = [pin({ algorithms: ["EdDSA", "RS256", "ES256"] })];

  it("names issuer, subject and end", async () => {
    expect(await verify(token())).toEqual({ issuer, subject: "alice", exp: now + 300 });
  });

  it("may be signed with RS256 or ES256 where a pin says so, and only there", async () => {
    const rs = token(claims(), { alg: "RS256", kid: "rsa" }, rsa as typeof ed);
    const es = token(claims(), { alg: "ES256", kid: "ec" }, ec as typeof ed);
    expect((await verify(rs, all)).subject).toBe("alice");
    expect((await verify(es, all)).subject).toBe("alice");
    expect(await refusal(verify(rs))).toBe("alg: not of this pin");
    expect(await refusal(verify(es))).toBe("alg: not of this pin");
  });

  it.each<[string, () => string, string]>([
    ["over 8,192 bytes", () => "a".repeat(8_193), "too long"],
    ["no JWS", () => "alice", "not a compact JWS"],
    [
      "a repeated member",
      () => token().replace(/^[^.]+/, Buffer.from('{"alg":"EdDSA","alg":"EdDSA"}').toString("base64url")),
      "header: the body repeats a member name",
    ],
    ["without kid", () => token(claims(), { alg: "EdDSA" }), "header: no alg or no kid"],
    ["alg none", () => token(claims(), { alg: "none", kid: "ed" }), "alg: not of this pin"],
    ["HS256", () => token(claims(), { alg: "HS256", kid: "ed" }), "alg: not of this pin"],
    ...["jku", "jwk", "x5u", "x5c", "crit"].map((name): [string, () => string, string] => [
      `with ${name}`,
      () => token(claims(), { alg: "EdDSA", kid: "ed", [name]: [] }),
      `header: ${name}`,
    ]),
    ["another issuer", () => token(claims({ iss: `${issuer}/` })), "iss: not a pinned issuer"],
    [
      "an unknown kid",
      () => token(claims(), { alg: "EdDSA", kid: "gone" }),
      "kid: no such key, or one that does not fit",
    ],
    [
      "another type of key",
      () => token(claims(), { alg: "EdDSA", kid: "rsa" }),
      "kid: no such key, or one that does not fit",
    ],
    ["altered claims", () => token().replace(/\.[^.]+\./, `.${encode(claims({ sub: "eve" }))}.`), "signature"],
    ["another audience", () => token(claims({ aud: "other" })), "aud"],
    ["two audiences", () => token(claims({ aud: ["mesh", "other"] })), "aud"],
    ["no audience", () => token(claims({ aud: undefined })), "aud"],
    ["no exp", () => token(claims({ exp: undefined })), "exp: no integer"],
    ["an exp as text", () => token(claims({ exp: `${now + 10}` })), "exp: no integer"],
    ["a fractional exp", () => token(claims({ exp: now + 0.5 })), "exp: no integer"],
    ["expired six seconds ago", () => token(claims({ exp: now - 6 })), "exp: passed"],
    ["a life of over a day", () => token(claims({ exp: now + 86_401 })), "exp: too far ahead"],
    ["an nbf ahead", () => token(claims({ nbf: now + 6 })), "nbf: not yet"],
    ["an iat ahead", () => token(claims({ iat: now + 6 })), "iat: not yet"],
    ["an iat as text", () => token(claims({ iat: "now" })), "iat: not yet"],
    ["no sub", () => token(claims({ sub: undefined })), "sub"],
    ["an empty sub", () => token(claims({ sub: "" })), "sub"],
    ["a sub of 256 characters", () => token(claims({ sub: "a".repeat(256) })), "sub"],
  ])("is refused: %s", async (_, text, reason) => {
    expect(await refusal(verify(text()))).toBe(reason);
  });

  it("is refused under an RSA key of less than 2,048 bits, or one for another use", async () => {
    const signed = token(claims(), { alg: "RS256", kid: "weak" }, weak as typeof ed);
    expect(await refusal(verify(signed, all))).toMatch(/does not fit/);
    for (const more of [{ use: "enc" }, { alg: "RS256" }]) {
      expect(await refusal(verify(token(), [pin({ keys: [jwk(ed, { kid: "ed", ...more })] })]))).toMatch(
        /does not fit/,
      );
    }
  });

  it("has five seconds of skew, and one element may stand in a list of audiences", async () => {
    const skewed = claims({ exp: now - 4, nbf: now + 5, iat: now + 5, aud: ["mesh"] });
    expect((await verify(token(skewed))).exp).toBe(now - 4);
  });

  it("counts for the pin of its issuer alone", async () => {
    const other = pin({ issuer: "https://other.example", keys: [jwk(generateKeyPairSync("ed25519"), { kid: "ed" })] });
    expect((await verify(token(), [other, pin()])).issuer).toBe(issuer);
    expect(await refusal(verify(token(claims({ iss: other.issuer })), [other, pin()]))).toBe("signature");
  });
});

describe("a provider's key set", () => {
  const open: { close(): void }[] = [];
  afterEach(() => {
    for (const server of open.splice(0)) server.close();
  });

  /** A server that answers with whatever `answer` does. */
  async function served(answer: (response: ServerResponse, request: IncomingMessage) => void) {
    let requests = 0;
    const server = createServer((request, response) => {
      requests += 1;
      answer(response, request);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    open.push({
      close() {
        server.closeAllConnections();
        server.close();
      },
    });
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const clock = testPorts();
    const url = `http://127.0.0.1:${address.port}/jwks`;
    const verifier = new IdpVerifier([{ url: issuer, issuer, audience: "mesh", jwksUri: url }], clock);
    return { clock, verifier, url, requests: () => requests };
  }

  const keySet = (...kids: string[]) => JSON.stringify({ keys: kids.map((kid) => jwk(ed, { kid })) });
  const named = (kid: string) => token(claims(), { alg: "EdDSA", kid });

  it("is fetched once for many and kept 300 s", async () => {
    const { clock, verifier, requests } = await served((response) => response.end(keySet("ed")));
    await Promise.all(Array.from({ length: 20 }, () => verifier.verify(token())));
    clock.advance(299_999);
    clock.step(-299_999);
    await verifier.verify(token());
    expect(requests()).toBe(1);
    clock.advance(1);
    await verifier.verify(token());
    expect(requests()).toBe(2);
  });

  it("is fetched again for an unknown kid, at most every 30 s", async () => {
    let kids = ["ed"];
    const { clock, verifier, requests } = await served((response) => response.end(keySet(...kids)));
    await verifier.verify(token());
    kids = ["ed", "next"];
    expect(await refusal(verifier.verify(named("next")))).toMatch(/no such key/);
    expect(requests()).toBe(1);
    clock.advance(30_000);
    clock.step(-30_000);
    expect((await verifier.verify(named("next"))).subject).toBe("alice");
    expect(await refusal(verifier.verify(named("gone")))).toMatch(/no such key/);
    expect(requests()).toBe(2);
  });

  it("is never used stale: once it is due and unreachable, the answer is unavailable", async () => {
    let healthy = true;
    const { clock, verifier, requests } = await served((response) => {
      response.writeHead(healthy ? 200 : 503).end(keySet("ed"));
    });
    await verifier.verify(token());
    healthy = false;
    clock.advance(300_000);
    clock.step(-300_000);
    expect(await refusal(verifier.verify(token()))).toBe("unavailable");
    expect(await refusal(verifier.verify(token()))).toBe("unavailable");
    expect(requests()).toBe(2); // a failure speaks for the next second
    healthy = true;
    clock.advance(1_000);
    clock.step(-1_000);
    expect((await verifier.verify(token())).subject).toBe("alice");
  });

  it.each<[string, (response: ServerResponse, request: IncomingMessage) => void]>([
    [
      "a redirect",
      (response, { url }) =>
        url === "/ok" ? response.end(keySet("ed")) : response.writeHead(302, { location: "/ok" }).end(),
    ],
    ["another status", (response) => response.writeHead(404).end(keySet("ed"))],
    ["more than 64 KiB", (response) => response.end(`{"keys":[],"pad":"${"a".repeat(65_536)}"}`)],
    ["something else than JSON", (response) => response.end("<html>")],
    ["JSON without keys", (response) => response.end("[]")],
    [
      "a broken answer",
      (response) => response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy()),
    ],
  ])("is not taken from %s", async (_, answer) => {
    const { verifier } = await served(answer);
    expect(await refusal(verifier.verify(token()))).toBe("unavailable");
  });

  it("is not waited for longer than five seconds", async () => {
    const { url } = await served(() => {});
    const waits: number[] = [];
    const clock = { ...testPorts(), sleep: async (ms: number) => void waits.push(ms) };
    const verifier = new IdpVerifier([{ url: issuer, issuer, audience: "mesh", jwksUri: url }], clock);
    expect(await refusal(verifier.verify(token()))).toBe("unavailable");
    expect(waits).toEqual([5_000]);
  });
});

describe("a real provider", () => {
  let provider: OidcProvider;
  beforeAll(async () => {
    provider = await startOidcProvider();
  });
  afterAll(() => provider.stop());

  it("logs a person in with an authorization code, and its token proves it", async () => {
    const verifier = new IdpVerifier([provider.pin], testPorts(Date.now()));
    const text = await provider.login("alice");
    expect(await verifier.verify(text)).toMatchObject({ issuer: provider.pin.issuer, subject: "alice" });
    expect(
      await refusal(new IdpVerifier([{ ...provider.pin, audience: "other" }], testPorts(Date.now())).verify(text)),
    ).toBe("aud");
  });

  it("may rotate its key: the new one is found after the cooldown, a forgotten one no longer", async () => {
    const clock = testPorts(Date.now());
    const verifier = new IdpVerifier([provider.pin], clock);
    const before = await provider.login("bob");
    await verifier.verify(before);
    await provider.rotate();
    const after = await provider.login("bob");
    expect(await refusal(verifier.verify(after))).toMatch(/no such key/);
    clock.advance(30_000);
    clock.step(-30_000);
    expect((await verifier.verify(after)).subject).toBe("bob");
    expect((await verifier.verify(before)).subject).toBe("bob");
    await provider.rotate(true);
    clock.advance(300_000);
    clock.step(-300_000);
    expect(await refusal(verifier.verify(before))).toMatch(/no such key/);
  });

  it.each(["RS256", "ES256"] as const)("may sign with %s", async (alg) => {
    const other = await startOidcProvider(alg);
    try {
      const text = await other.login("carol");
      const verifier = new IdpVerifier([other.pin], testPorts(Date.now()));
      expect((await verifier.verify(text)).subject).toBe("carol");
    } finally {
      await other.stop();
    }
  });
});
