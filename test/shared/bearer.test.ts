import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { calculateJwkThumbprint, importJWK, type JWK } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import { type Bearer, type BearerAct, type SigningKey, signBearer, validateBearer } from "../../shared/bearer.ts";
import { BearerKeys } from "../../shared/bearer-keys.ts";
import { isAuthorityError, unavailable } from "../../shared/errors.ts";
import { CredentialId, Principal, Space, Uid } from "../../shared/tokens.ts";
import { VIEWS, type View, viewRule } from "../../shared/views.ts";
import { testPorts } from "../kit/clock.ts";

const space = Space.parse("demo");
const issuer = "urn:cotal:auth:demo";
const uid = Uid.parse("a".repeat(26));
const act = {
  owner: "u_qzgcmqkl3272ed2stsjzbvrqga",
  actor: "cli",
  scope: ["spawn", "run"],
  lifecycleUid: uid,
  credentialId: CredentialId.parse(`root-${"b".repeat(26)}`),
} as BearerAct;
const ports = testPorts();
const now = Math.floor(ports.now() / 1_000);

let privateKey: KeyObject;
let publicJwk: JWK & { kid: string };
let key: SigningKey;

beforeAll(async () => {
  const pair = generateKeyPairSync("ed25519");
  privateKey = pair.privateKey;
  const jwk = pair.publicKey.export({ format: "jwk" }) as JWK;
  publicJwk = { ...jwk, kid: await calculateJwkThumbprint(jwk) };
  const imported = await importJWK(privateKey.export({ format: "jwk" }) as JWK, "EdDSA");
  if (imported instanceof Uint8Array) throw new Error("not a private key");
  key = { kid: publicJwk.kid, privateKey: imported };
});

const keyOf = async (kid: string) => keys().of(kid);
const keys = () => new BearerKeys(async () => ({ issuer, keys: [publicJwk] }), ports);
const validate = (token: string) => validateBearer(token, space, keyOf, ports);

const claims = (changes: object = {}, actChanges: object = {}): Record<string, unknown> => ({
  iss: issuer,
  aud: "demo",
  sub: act.owner,
  ver: 1,
  iat: now,
  nbf: now,
  exp: now + 300,
  scope: act.scope,
  act: { ...act, ...actChanges },
  ...changes,
});

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
function forge(payload: unknown, header: unknown = { alg: "EdDSA", kid: publicJwk.kid, typ: "JWT" }): string {
  const text = `${encode(header)}.${encode(payload)}`;
  return `${text}.${sign(null, Buffer.from(text), privateKey).toString("base64url")}`;
}

/** The code and the private reason of a refusal. */
async function refusal(work: Promise<unknown>): Promise<[string, string | undefined]> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!isAuthorityError(error)) throw new Error("not refused", { cause: error });
  if (error.code === "unauthenticated") expect(error.message).toBe("the bearer is not valid");
  return [error.code, error.reason];
}

describe("signing a bearer", () => {
  const request = { issuer, space, act, notAfter: [] };

  it("gives closed claims that validate", async () => {
    const { token, exp } = await signBearer(request, key, ports);
    expect(exp).toBe(now + 900);
    expect(await validate(token)).toEqual(claims({ exp }));
    const header = JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString());
    expect(header).toEqual({ alg: "EdDSA", kid: publicJwk.kid, typ: "JWT" });
  });

  it("takes the lowest of the life asked for, the cap and every bound", async () => {
    const exp = async (more: object) => (await signBearer({ ...request, ...more }, key, ports)).exp - now;
    expect(await exp({ ttlS: 60 })).toBe(60);
    expect(await exp({ ttlS: 5_000 })).toBe(900);
    expect(await exp({ notAfter: [now + 100, now + 50] })).toBe(50);
    expect(await exp({ act: { ...act, parent: Principal.parse(`${act.owner}.mum`) } })).toBe(300);
    const transfer = { ...act, view: "transfer-writer", transferWriter: { instanceId: uid, hex: "0".repeat(64) } };
    expect(await exp({ act: transfer })).toBe(300);
  });

  it("refuses under five seconds, however it comes about", async () => {
    expect(await refusal(signBearer({ ...request, notAfter: [now + 4] }, key, ports))).toEqual(["expired", undefined]);
    const late = testPorts();
    late.step(296_000); // the signer was delayed
    expect((await refusal(signBearer({ ...request, notAfter: [now + 300] }, key, late)))[0]).toBe("expired");
  });

  it("refuses a bound that is no integer, since it would bound nothing", async () => {
    expect((await refusal(signBearer({ ...request, notAfter: [Number.NaN] }, key, ports)))[0]).toBe("internal");
  });

  it("refuses claims that are no bearer", async () => {
    const open = { ...act, more: 1 } as BearerAct;
    expect((await refusal(signBearer({ ...request, act: open }, key, ports)))[0]).toBe("internal");
  });
});

describe("validating a bearer", () => {
  const other = "u_5u2jprrmk6itxm7le3ec7flrxm";
  const pairing = "a claim without its view, or the reverse";
  const shape = "claims: not the closed shape";

  it.each<[string, () => string, string]>([
    ["over 16 KiB", () => "a".repeat(16_385), "too long"],
    ["two segments", () => "aa.bb", "not a compact JWS"],
    ["padding", () => `${forge(claims())}=`, "not a compact JWS"],
    [
      "alg none",
      () => forge(claims(), { alg: "none", kid: publicJwk.kid, typ: "JWT" }),
      "header: not the closed shape",
    ],
    [
      "a header without typ",
      () => forge(claims(), { alg: "EdDSA", kid: publicJwk.kid }),
      "header: not the closed shape",
    ],
    [
      "a further header member",
      () => forge(claims(), { alg: "EdDSA", kid: publicJwk.kid, typ: "JWT", jku: "https://evil.example" }),
      "header: not the closed shape",
    ],
    ["a removed kid", () => forge(claims(), { alg: "EdDSA", kid: "gone", typ: "JWT" }), "unknown kid"],
    ["altered claims", () => forge(claims()).replace(/\.[^.]+\./, `.${encode(claims({ ver: 2 }))}.`), "signature"],
    ["another version", () => forge(claims({ ver: 2 })), "ver"],
    ["another issuer", () => forge(claims({ iss: "urn:cotal:auth:other" })), "iss"],
    ["another space", () => forge(claims({ aud: "other" })), "aud"],
    ["two audiences", () => forge(claims({ aud: ["demo", "demo"] })), "aud"],
    ["a fractional exp", () => forge(claims({ exp: now + 10.5 })), "iat, nbf, exp: not integers"],
    ["an exp as text", () => forge(claims({ exp: `${now + 10}` })), "iat, nbf, exp: not integers"],
    ["an iat ahead", () => forge(claims({ iat: now + 6, nbf: now })), "not valid yet"],
    ["an nbf ahead", () => forge(claims({ nbf: now + 6 })), "not valid yet"],
    [
      "a life over its cap",
      () => forge(claims({ iat: now - 700, nbf: now - 700, exp: now + 201 })),
      "lives longer than its cap",
    ],
    ["an exp too far ahead", () => forge(claims({ iat: now + 5, exp: now + 906 })), "lives longer than its cap"],
    [
      "a managed actor's over 300 s",
      () => forge(claims({ exp: now + 301 }, { parent: `${act.owner}.mum` })),
      "lives longer than its cap",
    ],
    ["an unknown claim", () => forge(claims({ jti: "x" })), shape],
    ["an unknown member of act", () => forge(claims({}, { admin: true })), shape],
    ["an unknown view", () => forge(claims({}, { view: "root" })), shape],
    ["an unknown scope", () => forge(claims({ scope: ["root"] }, { scope: ["root"] })), shape],
    ["another owner in act", () => forge(claims({}, { owner: other })), "act.owner is not sub"],
    [
      "a scope wider than act.scope",
      () => forge(claims({ scope: ["spawn", "run", "admin"] })),
      "scope is not act.scope",
    ],
    ["a pairing claim without its view", () => forge(claims({}, { managerInstanceId: uid })), pairing],
    ["a view without its pairing claim", () => forge(claims({}, { view: "manager-caller" })), pairing],
    [
      "two pairing claims",
      () => {
        const transferWriter = { instanceId: uid, hex: "0".repeat(64) };
        return forge(claims({}, { view: "manager-caller", managerInstanceId: uid, transferWriter }));
      },
      pairing,
    ],
    [
      "a person's view of a managed actor",
      () => forge(claims({}, { parent: `${act.owner}.mum`, view: "admin" })),
      "not a view of a managed actor",
    ],
  ])("refuses %s", async (_, token, reason) => {
    expect(await refusal(validate(token()))).toEqual(["unauthenticated", reason]);
  });

  it("says expired only of a passed exp, after five seconds of skew", async () => {
    const aged = (exp: number) => forge(claims({ iat: exp - 300, nbf: exp - 300, exp }));
    expect((await refusal(validate(aged(now - 5))))[0]).toBe("expired");
    expect((await validate(aged(now - 4))).exp).toBe(now - 4);
  });

  it("checks in the order of the chapter: of two faults the first one speaks", async () => {
    const both = [
      [forge({ ...claims(), ver: 2 }, { alg: "EdDSA", kid: "gone", typ: "JWT" }), "unknown kid"],
      [forge(claims({ ver: 2, iss: "x" })), "ver"],
      [forge(claims({ aud: "x", exp: "x" })), "aud"],
      [forge(claims({ iat: now + 6, jti: 1 })), "not valid yet"],
      [forge(claims({ jti: 1, sub: other })), shape],
      [forge(claims({ sub: other, scope: [] })), "act.owner is not sub"],
      [forge(claims({ scope: [] }, { managerInstanceId: uid })), "scope is not act.scope"],
      [forge(claims({}, { parent: `${act.owner}.mum`, view: "session-caller" })), pairing],
    ] as const;
    for (const [token, reason] of both) expect((await refusal(validate(token)))[1]).toBe(reason);
    expect((await refusal(validate(forge(claims({ exp: now - 10, jti: 1 })))))[0]).toBe("expired");
  });

  it("takes an audience of one element", async () => {
    expect((await validate(forge(claims({ aud: ["demo"] })))).sub).toBe(act.owner);
  });
});

describe("views", () => {
  it("let each view be signed with its pairing claim alone", async () => {
    const pairs = {
      managerInstanceId: uid,
      session: { endpoint: "manager", sessionId: "s".repeat(22), epoch: 0, exp: now + 60 },
      transferWriter: { instanceId: uid, hex: "0".repeat(64) },
    };
    for (const view of Object.keys(VIEWS) as View[]) {
      const { pairing } = viewRule(view);
      const paired = { ...act, view, ...(pairing ? { [pairing]: pairs[pairing] } : {}) } as BearerAct;
      const { token } = await signBearer({ issuer, space, act: paired, notAfter: [] }, key, ports);
      const bearer: Bearer = await validate(token);
      expect(bearer.act.view).toBe(view);
    }
  });
});

describe("the keys of a verifier", () => {
  function watched() {
    const clock = testPorts();
    let reads = 0;
    let rows: JWK[] | undefined = [publicJwk];
    const kept = new BearerKeys(async () => {
      reads += 1;
      if (!rows) throw unavailable("no leader");
      return { issuer, keys: rows };
    }, clock);
    return {
      clock,
      kept,
      reads: () => reads,
      set: (next: JWK[] | undefined) => {
        rows = next;
      },
    };
  }

  it("are read once for many, and again after 60 s", async () => {
    const { clock, kept, reads } = watched();
    await Promise.all(Array.from({ length: 20 }, () => kept.of(publicJwk.kid)));
    clock.advance(59_999);
    await kept.of(publicJwk.kid);
    expect(reads()).toBe(1);
    clock.advance(1);
    await kept.of(publicJwk.kid);
    expect(reads()).toBe(2);
  });

  it("are read again for an unknown kid, at most every 5 s", async () => {
    const { clock, kept, reads, set } = watched();
    await kept.of(publicJwk.kid);
    set([publicJwk, { ...publicJwk, kid: "next" }]);
    expect(await kept.of("next")).toBeUndefined();
    expect(reads()).toBe(1);
    clock.advance(5_000);
    expect(await kept.of("next")).toBeDefined();
    expect(await kept.of("other")).toBeUndefined();
    expect(reads()).toBe(2);
  });

  it("forget a removed key within 60 s, and are never used stale", async () => {
    const { clock, kept, set } = watched();
    expect(await kept.of(publicJwk.kid)).toBeDefined();
    set([]);
    clock.advance(60_000);
    expect(await kept.of(publicJwk.kid)).toBeUndefined();
    set(undefined);
    clock.advance(60_000);
    expect(await refusal(kept.of(publicJwk.kid))).toEqual(["unavailable", "no leader"]);
  });
});
