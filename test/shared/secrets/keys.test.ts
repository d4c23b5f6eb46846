import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatCreds } from "../../../shared/credentials/creds.ts";
import { encodeJwt, userClaims } from "../../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { provisionedUid, provisionedUser, USER_NAMES } from "../../../shared/credentials/users.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { newIssuerFile, newIssuerKey } from "../../../shared/secrets/issuer.ts";
import {
  adoptSecret,
  loadCreds,
  loadSecret,
  newOwnerSecret,
  readSecret,
  SECRET,
  viewKeys,
} from "../../../shared/secrets/keys.ts";
import { type SecretStore, secretKey } from "../../../shared/secrets/store.ts";
import { Space } from "../../../shared/tokens.ts";

const space = Space.parse("demo");
const none = { allow: [], deny: [] };

/** A store in memory, as a host may bring one. */
function memoryStore(): SecretStore & { readonly values: Map<string, Uint8Array> } {
  const values = new Map<string, Uint8Array>();
  return {
    identity: "memory",
    values,
    get: async (key) => values.get(key),
    create: async (key, value) => !values.has(key) && values.set(key, value) !== undefined,
    put: async (key, value) => void values.set(key, value),
  };
}

const account = createKeyPair("account");
const signing = createKeyPair("account");
const curve = createKeyPair("curve");
const user = createKeyPair("user");
const creds = formatCreds(
  encodeJwt(
    userClaims({
      subject: user.public,
      name: "local-callout",
      issuerAccount: account.public,
      permissions: { pub: none, sub: none },
      tags: [],
      iat: 1,
    }),
    signing,
  ),
  user.seed,
);

const contents: { [name in keyof typeof SECRET]: unknown } = {
  serviceKeys: {
    ver: 1,
    dataAccount: { pub: account.public, signingSeed: signing.seed, previousSeed: signing.seed },
    authorityAccount: { pub: createKeyPair("account").public, signingSeed: signing.seed },
  },
  publicKeys: {
    ver: 1,
    accounts: Object.fromEntries(
      ["space", "callout", "authority"].map((name) => [name, createKeyPair("account").public]),
    ),
    users: Object.fromEntries(USER_NAMES.map((name) => [name, createKeyPair("user").public])),
  },
  calloutKeys: {
    ver: 1,
    account: { pub: account.public, signingPub: signing.public, signingSeed: signing.seed },
    calloutCreds: creds,
    xkey: { pub: curve.public, seed: curve.seed },
  },
  issuer: newIssuerFile(space, systemPorts),
  ownerSecret: newOwnerSecret(systemPorts),
};

const names = Object.keys(SECRET) as (keyof typeof SECRET)[];
const text = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const file = (name: keyof typeof SECRET) => secretKey(space, SECRET[name].file);
const read = (store: SecretStore, name: keyof typeof SECRET) => {
  switch (name) {
    case "serviceKeys":
      return loadSecret<unknown>(store, space, SECRET.serviceKeys);
    case "publicKeys":
      return loadSecret<unknown>(store, space, SECRET.publicKeys);
    case "calloutKeys":
      return loadSecret<unknown>(store, space, SECRET.calloutKeys);
    case "issuer":
      return loadSecret<unknown>(store, space, SECRET.issuer);
    case "ownerSecret":
      return loadSecret<unknown>(store, space, SECRET.ownerSecret);
  }
};

/** What is at a path of members, replaced. */
function put(value: unknown, [member, ...rest]: string[], by: unknown): unknown {
  if (member === undefined) return by;
  const of = value as Record<string, unknown>;
  return Array.isArray(value)
    ? value.map((one, i) => (String(i) === member ? put(one, rest, by) : one))
    : { ...of, [member]: put(of[member], rest, by) };
}

describe("files of keys", () => {
  it.each(names)("reads %s as it stands, and refuses it missing, with an unknown field or version", async (name) => {
    const store = memoryStore();
    const refusal = (why: RegExp) =>
      expect.objectContaining({ code: "failed-precondition", reason: expect.stringMatching(why) });
    await expect(read(store, name)).rejects.toThrowError(refusal(/^auth\/space\.64656d6f\/[a-z.-]+: is not there$/));
    store.values.set(file(name), text(contents[name]));
    expect(await read(store, name)).toEqual(contents[name]);
    for (const bad of [{ ...Object(contents[name]), more: 1 }, { ...Object(contents[name]), ver: 2 }, [], null]) {
      store.values.set(file(name), text(bad));
      await expect(read(store, name)).rejects.toThrowError(refusal(new RegExp(`^${file(name)}: /`)));
    }
    store.values.set(file(name), new Uint8Array());
    await expect(read(store, name)).rejects.toThrowError(refusal(/: the body is not JSON$/));
  });

  const key = newIssuerKey(systemPorts);
  const other = newIssuerKey(systemPorts);
  it.each<[keyof typeof SECRET, string, unknown, string]>([
    ["serviceKeys", "dataAccount.signingSeed", user.seed, "/dataAccount/signingSeed is no account seed"],
    ["serviceKeys", "dataAccount.signingSeed", account.seed, "/dataAccount/signingSeed is of the account itself"],
    [
      "serviceKeys",
      "dataAccount.previousSeed",
      `${signing.seed.slice(0, 20)}${signing.seed[20] === "A" ? "B" : "A"}${signing.seed.slice(21)}`,
      "/dataAccount/previousSeed is no account seed",
    ],
    ["serviceKeys", "authorityAccount.pub", `AB${"A".repeat(54)}`, "/authorityAccount/pub is no account nkey"],
    ["publicKeys", "accounts.callout", `AB${"A".repeat(54)}`, "/accounts/callout is no account nkey"],
    ["publicKeys", "users.callout", "U".repeat(56), "/users/callout is no user nkey"],
    ["calloutKeys", "account.signingSeed", account.seed, "/account/signingSeed is not of signingPub"],
    ["calloutKeys", "account.pub", createKeyPair("account").public, "/calloutCreds are of another account"],
    ["calloutKeys", "calloutCreds", "", "/calloutCreds are malformed"],
    ["calloutKeys", "xkey.pub", createKeyPair("curve").public, "/xkey/seed is not of pub"],
    ["issuer", "activeKid", other.kid, "/keys/0 and /activeKid disagree on who signs"],
    ["issuer", "keys", [key], "/keys/0 and /activeKid disagree on who signs"],
    ["issuer", "keys.0.kid", other.kid, "/keys/0/kid is not the key's thumbprint"],
    ["issuer", "keys.0.privateJwk.d", other.privateJwk.d, "/keys/0/privateJwk has halves of two keys"],
  ])("refuses %s with another %s", async (name, path, by, why) => {
    const store = memoryStore();
    if (name === "issuer" && path === "keys")
      store.values.set(file(name), text(put(put(contents.issuer, ["activeKid"], key.kid), ["keys"], by)));
    else store.values.set(file(name), text(put(contents[name], path.split("."), by)));
    await expect(read(store, name)).rejects.toThrowError(expect.objectContaining({ reason: `${file(name)}: ${why}` }));
  });

  it("refuses one key under two names", async () => {
    const store = memoryStore();
    const twice = put(contents.publicKeys, ["users", "operator"], Object(contents.publicKeys).users.exchange);
    store.values.set(file("publicKeys"), text(twice));
    await expect(read(store, "publicKeys")).rejects.toThrowError(
      expect.objectContaining({ reason: expect.stringContaining("one key under two names") }),
    );
  });

  it("never reads garbage, and never quotes it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), fc.oneof(fc.string(), fc.json()), async (name, garbage) => {
        const store = memoryStore();
        store.values.set(file(name), new TextEncoder().encode(garbage));
        const error: unknown = await read(store, name).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: "failed-precondition" });
        if (garbage.length > 20) expect(Object(error).reason).not.toContain(garbage);
      }),
    );
  });

  it("generates what is absent once, and adopts a faster one", async () => {
    const store = memoryStore();
    expect(await readSecret(store, space, SECRET.ownerSecret)).toBeUndefined();
    const first = await adoptSecret(store, space, SECRET.ownerSecret, () => newOwnerSecret(systemPorts));
    expect(Buffer.from(first.secretB64, "base64")).toHaveLength(32);
    expect(await adoptSecret(store, space, SECRET.ownerSecret, () => newOwnerSecret(systemPorts))).toEqual(first);
  });

  it("reads creds, and names them when they are broken", async () => {
    const store = memoryStore();
    const key = secretKey(space, "exchange.creds");
    store.values.set(key, new TextEncoder().encode(creds));
    expect((await loadCreds(store, space, "exchange")).seed).toBe(user.seed);
    store.values.set(key, new TextEncoder().encode(`${creds.slice(0, 60)}${creds.slice(61)}`));
    await expect(loadCreds(store, space, "exchange")).rejects.toThrowError(
      expect.objectContaining({ code: "failed-precondition", reason: `${key}: malformed creds` }),
    );
  });

  it("gives no signing key to whoever has system rights", () => {
    expect(viewKeys(space, "custodian")).not.toContain(file("serviceKeys"));
    expect(viewKeys(space, "exchange")).not.toContain(file("serviceKeys"));
    expect(viewKeys(space, "auth")).not.toContain(secretKey(space, "custodian_system.creds"));
  });
});

describe("provisioned users", () => {
  it("have the uid that follows from their nkey", () => {
    expect(provisionedUid("UCJZ75WWP3T7XKIV7ZHC7IAEQAQZK6FOWAZPILK2V6AMVHQO3X7O6L2D")).toMatch(/^[0-9a-f]{26}$/);
    const one = provisionedUser(space, "platform_host", user.public);
    expect(one).toMatchObject({
      owner: "local",
      actor: "platform_host",
      account: "space",
      uid: provisionedUid(user.public),
    });
  });
});
