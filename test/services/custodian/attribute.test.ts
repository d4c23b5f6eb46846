import { describe, expect, it } from "vitest";
import { attribute } from "../../../services/custodian/attribute.ts";
import { encodeJwt, userClaims } from "../../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";

const account = createKeyPair("account");
const user = createKeyPair("user").public;

function jwt(tags: readonly unknown[] | undefined, sub = user): string {
  const permissions = { pub: { allow: [], deny: [] }, sub: { allow: [], deny: [] } };
  const draft = userClaims({ subject: sub, name: "n", issuerAccount: account.public, permissions, tags: [], iat: 1 });
  return encodeJwt({ ...draft, nats: { ...draft.nats, tags } }, account);
}

const person = `u_${"a".repeat(26)}`;
const payload = (text: string): string => `e30.${Buffer.from(text).toString("base64url")}.c2ln`;

describe("attribution of a connection", () => {
  it("follows the one principal tag of a JWT, whatever user name the client chose", () => {
    expect(
      attribute({ jwt: jwt(["owner:local", "principal:local.auth_serve_1"]), authorizedUser: "local-auth" }),
    ).toEqual({ principal: "local.auth_serve_1", userNkey: user });
    expect(attribute({ jwt: jwt([`principal:${person}.Coder_1`]) })).toEqual({
      principal: `${person}.Coder_1`,
      userNkey: user,
    });
  });

  it.each([
    ["no tags at all", undefined, "it has no principal tag"],
    ["no principal tag", ["owner:local", "actor:auth", 7], "it has no principal tag"],
    ["two", ["principal:local.a", "principal:local.b"], "it has several principal tags"],
    ["the same twice", ["principal:local.a", "principal:local.a"], "it has several principal tags"],
    ["an owner of another form", ["principal:someone.a"], "its principal tag is malformed"],
    ["three parts", ["principal:local.a.b"], "its principal tag is malformed"],
    ["the dash form", ["principal:local-a"], "its principal tag is malformed"],
  ])("finds nobody in a JWT with %s, but its nkey", (_what, tags, fault) => {
    expect(attribute({ jwt: jwt(tags), authorizedUser: "local-auth" })).toEqual({ userNkey: user, fault });
  });

  it.each([
    ["empty", ""],
    ["two parts", "a.b"],
    ["four parts", `${payload("{}")}.x`],
    ["no JSON", payload("{")],
    ["a list", payload("[]")],
    ["no subject", payload('{"nats":{"tags":["principal:local.a"]}}')],
    [
      "an account for a subject",
      payload(JSON.stringify({ sub: account.public, nats: { tags: ["principal:local.a"] } })),
    ],
    ["its members twice", payload(`{"sub":"${user}","nats":{"tags":["principal:local.a"],"tags":[]}}`)],
  ])("finds nobody in a JWT that is %s", (_what, text) => {
    expect(attribute({ jwt: text, authorizedUser: "local-auth" })).toEqual({ fault: "its JWT is unreadable" });
  });

  it("follows the callout's name where there is no JWT, and then knows no nkey", () => {
    expect(attribute({ authorizedUser: `${person}-coder` })).toEqual({ principal: `${person}.coder` });
    expect(attribute({ authorizedUser: "local-auth" })).toEqual({ principal: "local.auth" });
  });

  it.each(["", "local", "local-", "-auth", "local-a-b", "local.auth", user, "[REDACTED]"])(
    "finds nobody in the name '%s'",
    (authorizedUser) => {
      expect(attribute({ authorizedUser })).toEqual({ fault: "its user name is no principal" });
    },
  );

  it("finds nobody where neither is shown", () => {
    expect(attribute({})).toEqual({ fault: "its user name is no principal" });
  });
});
