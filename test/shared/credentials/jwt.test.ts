import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatCreds, parseCreds } from "../../../shared/credentials/creds.ts";
import {
  accountClaims,
  type ClaimsDraft,
  decodeJwt,
  encodeJwt,
  identityTags,
  operatorClaims,
  type Permissions,
  userClaims,
} from "../../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair } from "../../../shared/credentials/nkeys.ts";
import vectors from "../../vectors/jwt.json" with { type: "json" };

const operator = createKeyPair("operator");
const account = createKeyPair("account");
const user = createKeyPair("user");
const iat = 1_790_000_000;
const nothing: Permissions = { pub: { allow: [], deny: [] }, sub: { allow: [], deny: [] } };

const alice = (permissions: Permissions = nothing, tags: string[] = []): ClaimsDraft =>
  userClaims({ subject: user.public, name: "local-alice", issuerAccount: account.public, permissions, tags, iat });

const refusal = expect.objectContaining({ code: "unauthenticated", message: "malformed JWT" });

/** Signs any payload under any header, as an attacker with a key of their own would. */
function forge(header: unknown, payload: unknown, signer: KeyPair): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part(header)}.${part(payload)}`;
  return `${signed}.${Buffer.from(signer.sign(Buffer.from(signed))).toString("base64url")}`;
}

describe("NATS JWTs", () => {
  it.each(vectors.accept)("accepts the public library's $type JWT", ({ jwt, type, issuer, subject, issuerAccount }) => {
    const claims = decodeJwt(jwt);
    expect(claims).toMatchObject({ iss: issuer, sub: subject, nats: { type } });
    expect(claims.nats.issuer_account).toBe(issuerAccount);
  });

  it.each(vectors.refuse)("refuses: $why", ({ jwt }) => {
    expect(() => decodeJwt(jwt)).toThrowError(refusal);
  });

  it("decodes what it encodes, under the signer as issuer", () => {
    const text = fc.string({ unit: "grapheme" });
    fc.assert(
      fc.property(text, fc.array(text), fc.option(fc.nat(), { nil: undefined }), (name, allow, exp) => {
        const permissions = { pub: { allow: ["a", ...allow], deny: allow }, sub: { allow: ["_INBOX.>"], deny: [] } };
        const options = { subject: user.public, name, issuerAccount: account.public, permissions, tags: allow, iat };
        const draft = userClaims(exp === undefined ? options : { ...options, exp });
        const { iss, jti, ...claims } = decodeJwt(encodeJwt(draft, account));
        expect([iss, claims]).toEqual([account.public, draft]);
        expect(Buffer.from(jti, "base64url")).toHaveLength(16);
      }),
    );
  });

  it("never parses one with a letter changed", () => {
    const jwt = encodeJwt(alice(), account);
    fc.assert(
      fc.property(fc.nat(jwt.length - 1), fc.constantFrom(..."Aa0-_.= \n+/é"), (at, letter) => {
        const altered = jwt.slice(0, at) + letter + jwt.slice(at + 1);
        if (altered !== jwt) expect(() => decodeJwt(altered)).toThrowError(refusal);
      }),
    );
  });

  it("never parses garbage", () => {
    const part = fc.oneof(
      fc.string(),
      fc.json().map((text) => Buffer.from(text).toString("base64url")),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
        expect(() => decodeJwt(parts.join("."))).toThrowError(refusal);
      }),
    );
  });

  const header = { typ: "JWT", alg: "ed25519-nkey" };
  const claims = { ...alice(), jti: "x", iss: account.public };
  it.each([
    ["another header member", { ...header, jwk: {} }, claims, account],
    ["version 1's algorithm name", { ...header, alg: "ed25519" }, claims, account],
    ["a user signed by a user", header, { ...claims, iss: user.public }, user],
    ["a user signed by an operator", header, { ...claims, iss: operator.public }, operator],
    [
      "an account signed by an account",
      header,
      { ...claims, sub: account.public, nats: { type: "account", version: 2 } },
      account,
    ],
    ["an unknown type", header, { ...claims, nats: { type: "activation", version: 2 } }, account],
    ["a type from the prototype", header, { ...claims, nats: { type: "constructor", version: 2 } }, account],
    ["version 1 claims", header, { ...claims, nats: { type: "user", version: 1 } }, account],
    ["a fractional time", header, { ...claims, exp: 1.5 }, account],
    ["no claims at all", header, null, account],
    ["a foreign signer", header, claims, createKeyPair("account")],
  ])("refuses %s", (_why, head, payload, signer) => {
    expect(() => decodeJwt(forge(head, payload, signer))).toThrowError(refusal);
  });

  it("writes an empty allow list as a denial of everything, since the broker reads it as everything", () => {
    expect(alice().nats).toMatchObject({ pub: { allow: [], deny: [">"] }, sub: { allow: [], deny: [">"] } });
  });

  it("writes out every account limit, none of JetStream for the system account", () => {
    const limits = (jetstream: "unlimited" | "none" | "unset") =>
      accountClaims({ subject: account.public, name: "A", signingKeys: [], jetstream, iat }).nats.limits;
    const core = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
    expect(limits("unset")).toEqual(core);
    expect(limits("none")).toMatchObject({ ...core, mem_storage: 0, disk_storage: 0 });
    expect(limits("unlimited")).toMatchObject({
      ...core,
      mem_storage: -1,
      disk_storage: -1,
      streams: -1,
      consumer: -1,
    });
  });

  it("names the system account in the operator's", () => {
    const draft = operatorClaims({ subject: operator.public, name: "O", systemAccount: account.public, iat });
    expect(decodeJwt(encodeJwt(draft, operator)).nats.system_account).toBe(account.public);
  });

  it("tags a user so that a sweep can attribute it", () => {
    expect(identityTags("local", "exchange", "u1")).toEqual([
      "owner:local",
      "actor:exchange",
      "principal:local.exchange",
      "uid:u1",
    ]);
  });
});

describe("creds files", () => {
  const jwt = encodeJwt(alice(), account);
  const file = formatCreds(jwt, user.seed);

  it("parse to what was formatted, with Windows line ends too", () => {
    expect(parseCreds(file)).toEqual({ jwt, seed: user.seed });
    expect(parseCreds(file.replaceAll("\n", "\r\n"))).toEqual({ jwt, seed: user.seed });
  });

  it.each([
    ["nothing", ""],
    ["no seed", file.slice(0, file.indexOf("*****"))],
    ["two of everything", file + file],
    ["another user's seed", formatCreds(jwt, createKeyPair("user").seed)],
    ["an account's seed", formatCreds(jwt, account.seed)],
    ["a broken JWT", formatCreds(`${jwt}A`, user.seed)],
  ])("do not parse with %s", (_why, text) => {
    expect(() => parseCreds(text)).toThrowError(expect.objectContaining({ code: "bad-request" }));
  });

  it("never parse garbage", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(() => parseCreds(formatCreds(a, b))).toThrow();
      }),
    );
  });
});
