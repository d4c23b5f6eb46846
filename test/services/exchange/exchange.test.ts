import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeOf } from "../../../shared/contracts/describe.ts";
import { discovery } from "../../../shared/contracts/exchange/discovery.ts";
import { exchangeUser } from "../../../shared/contracts/exchange/exchange-user.ts";
import { identify } from "../../../shared/contracts/exchange/identify.ts";
import { jwks } from "../../../shared/contracts/exchange/jwks.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { trustRows } from "../../../shared/rows/connect.ts";
import { Actor, Owner } from "../../../shared/tokens.ts";
import { login, ownerOf, pin, seconds } from "../../kit/logins.ts";
import type { TestSpace } from "../../kit/space.ts";
import { codeOf, type ExchangeSpace, startExchangeSpace } from "./asking.ts";

let exchange: ExchangeSpace;
let space: TestSpace;

beforeAll(async () => {
  exchange = await startExchangeSpace();
  space = exchange.space;
});
afterAll(() => exchange.stop());

const as = (owner: string, actor: string, uid = newUid(systemPorts)) =>
  space.clientAs({ owner: Owner.parse(owner), actor: Actor.parse(actor), uid });
const once = { once: true } as const;

describe("identify", () => {
  it("tells the authority whose a login is", async () => {
    const client = await space.authClient();
    const { owner, exp } = await client.call(identify, { idpToken: login("alice") });
    expect(owner).toBe(await ownerOf(space, "alice"));
    expect(Math.abs(exp - seconds() - 600)).toBeLessThanOrEqual(2);
    expect(await codeOf(client.call(identify, { idpToken: "x.y.z" }, once))).toBe("unauthenticated");
  });

  it("answers nobody else", async () => {
    const args = { idpToken: login("alice") };
    for (const [owner, actor] of [
      ["local", "gateway_other"],
      ["local", "authority"],
      ["u_qzgcmqkl3272ed2stsjzbvrqga", "auth"],
    ] as const) {
      expect(await codeOf(as(owner, actor).call(identify, args, once))).toBe("permission-denied");
    }
    // The broker does not let a gateway ask at all.
    const gateway = await space.client("gateway_loopback");
    await expect(gateway.call(identify, args, { ...once, deadlineMs: 500 })).rejects.toMatchObject({
      code: "unavailable",
    });
  });
});

describe("the callers of the exchange", () => {
  it("are the provisioned gateways under their own uid", async () => {
    expect(await codeOf(as("local", "gateway_loopback").call(jwks, {}, once))).toBe("permission-denied");
    expect(await codeOf(as("local", "operator").call(jwks, {}, once))).toBe("permission-denied");
    expect(await codeOf(as("local", "auth").call(jwks, {}, once))).toBe("permission-denied");
    const person = as("u_qzgcmqkl3272ed2stsjzbvrqga", "cli");
    expect(await codeOf(person.call(jwks, {}, once))).toBe("permission-denied");
    const withAuth = { ...once, auth: login("alice") };
    expect(await codeOf(person.call(exchangeUser, { actor: Actor.parse("cli") }, withAuth))).toBe("permission-denied");
  });

  it("are anybody for describe", async () => {
    const { descriptor } = await as("u_qzgcmqkl3272ed2stsjzbvrqga", "cli").call(describeOf("exchange"), null);
    expect(descriptor.commands.map(({ name }) => name)).toEqual([
      "discovery",
      "exchange-agent",
      "exchange-user",
      "identify",
      "jwks",
    ]);
  });
});

describe("jwks", () => {
  it("is every key of trust, and nothing private", async () => {
    const client = await space.client("gateway_public");
    const { keys } = await client.call(jwks, {});
    const trust = await space.store.read(trustRows.key({}));
    expect(keys).toEqual(trust?.value.keys);
    expect(keys.map((key) => Object.keys(key).sort())).toEqual([["alg", "crv", "kid", "kty", "use", "x"]]);
  });
});

describe("discovery", () => {
  it("is unavailable without a public URL", async () => {
    const client = await space.client("gateway_public");
    expect(await codeOf(client.call(discovery, {}, once))).toBe("unavailable");
  });

  it("is composed from settings alone", async () => {
    const second = { ...pin, issuer: "https://other.example", url: "https://other.example" };
    const { keys: _, ...rest } = pin;
    const fetched = { ...rest, issuer: "https://third.example", jwksUri: "https://third.example/jwks" };
    const other = await startExchangeSpace({
      pins: [pin, second, fetched],
      deps: {
        settings: {
          ...space.settings,
          gateway: { loopbackPort: 1, publicPort: 2, publicUrl: "https://mesh.example/auth/?x=1#y" },
          policy: { events: "required" },
          agentProvisioningUrl: "https://agents.example",
        },
      },
    });
    try {
      const bundle = await (await other.space.client("gateway_public")).call(discovery, {});
      expect(bundle).toEqual({
        space: "demo",
        server: "nats://127.0.0.1:4222",
        tlsRequired: false,
        sentinelCreds: expect.stringContaining("BEGIN NATS USER JWT"),
        userAuth: {
          provider: "cotal",
          idp: { url: pin.url, issuer: pin.issuer, audience: "mesh" },
          idps: [
            { url: pin.url, issuer: pin.issuer, audience: "mesh" },
            { url: second.url, issuer: second.issuer, audience: "mesh" },
            { url: pin.url, issuer: fetched.issuer, audience: "mesh", jwksUri: fetched.jwksUri },
          ],
          endpoints: {
            url: "https://mesh.example/auth",
            managerAuthorityUrl: "https://mesh.example/auth/manager-service-authority",
            agentProvisioningUrl: "https://agents.example",
          },
        },
        policy: { events: "required" },
      });
    } finally {
      await other.stop();
    }
  });
});
