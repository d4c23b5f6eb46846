import { describe, expect, it } from "vitest";
import { type AuthServiceInputs, checkInputs } from "../../services/inputs.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import type { SecretStore } from "../../shared/secrets/store.ts";
import { AccountNkey, Space } from "../../shared/tokens.ts";

const store: SecretStore = {
  identity: "vault-1",
  get: async () => undefined,
  create: async () => false,
  put: async () => {},
};

const inputs = (more: object = {}): AuthServiceInputs => ({
  context: { accountPublicKey: AccountNkey.parse(createKeyPair("account").public), lifecycleUid: newUid(systemPorts) },
  space: Space.parse("demo"),
  servers: "nats://127.0.0.1:4222",
  store,
  storeIdentity: "vault-1",
  ...more,
});

describe("the inputs of an embedding program", () => {
  it("host auth, exchange and callout unless others are named", () => {
    expect(checkInputs(inputs()).services).toEqual(["auth", "exchange", "callout"]);
    expect(checkInputs(inputs({ services: ["custodian"] })).services).toEqual(["custodian"]);
  });

  it.each([
    ["an unknown field", { verbose: true }],
    ["an unknown field in the context", { context: { ...inputs().context, more: 1 } }],
    ["no account key", { context: { accountPublicKey: "AAA", lifecycleUid: newUid(systemPorts) } }],
    ["a slot with a capital", { instance: "A" }],
    ["a standing life of 4 s", { standingRenewableTtlSeconds: 4 }],
    ["a standing life over a day", { standingRenewableTtlSeconds: 86_401 }],
    ["one service twice", { services: ["auth", "auth"] }],
    ["an unknown service", { services: ["gateway"] }],
    ["the custodian beside another", { services: ["custodian", "auth"] }],
    ["a public face alone", { publicFace: { port: 4281, url: "https://mesh.example" } }],
    ["a store without put", { store: { identity: "vault-1", get: store.get, create: store.create } }],
    ["no server", { servers: [] }],
  ])("refuse %s", (_, more) => {
    expect(() => checkInputs(inputs(more))).toThrow(expect.objectContaining({ code: "bad-request" }));
  });

  it("refuse another store than the one they name", () => {
    const other = inputs({ storeIdentity: "vault-2" });
    expect(() => checkInputs(other)).toThrow(expect.objectContaining({ code: "failed-precondition" }));
  });

  it("take a public face beside the loopback one", () => {
    const publicFace = { port: 4281, url: "https://mesh.example", trustedProxy: true };
    expect(checkInputs(inputs({ port: 4280, publicFace })).publicFace).toEqual(publicFace);
  });
});
