import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HostedService } from "../../../services/service.ts";
import { jwks } from "../../../shared/contracts/exchange/jwks.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { loadCreds } from "../../../shared/secrets/keys.ts";
import type { Host } from "../../kit/hosting.ts";
import type { Connected, Person } from "../../kit/person.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";
import { meshJson } from "./cli.ts";

/** A reload waits for clients that are being authenticated, among them those of a callout that has gone. */
const TIMEOUT_S = 1;

let space: TestSpace;
const hosts = new Map<HostedService, Host>();
let alice: Person;
/** Somebody who is connected all the while. */
let standing: Connected;

const start = async (...names: HostedService[]): Promise<void> => {
  const host = await space.host(names);
  for (const name of names) hosts.set(name, host);
};
/** As an operator restarts it: end, then begin with what the state holds now. */
const restart = async (name: HostedService): Promise<void> => {
  await hosts.get(name)?.stop();
  await start(name);
};
const reload = async (): Promise<void> => {
  const conf = await readFile(join(space.stateDir, "broker", "broker.conf"), "utf8");
  await space.broker.reload(`authorization { timeout: ${TIMEOUT_S} }\n${conf}`);
};
const rotate = (name: string) => meshJson(space, "rotate", "creds", name);

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth"], authTimeoutS: TIMEOUT_S });
  await start("exchange");
  await start("callout");
  alice = await space.person("alice");
  standing = await alice.connect();
});
afterAll(async () => {
  for (const host of hosts.values()) await host.stop();
  await space.stop();
});

describe("rotating creds from the command line while people are connected", () => {
  it("of the callout: who is connected stays, and others connect once it is started anew", async () => {
    expect(await rotate("callout")).toMatchObject({ code: 0, answer: { revoked: [expect.stringMatching(/^U/)] } });
    await (await alice.connect()).connection.close(); // not in force before the reload
    await reload();
    await expect.poll(() => hosts.get("callout")?.service("callout").ready()).toBe(false);
    await restart("callout");
    await (await alice.connect()).connection.close();
    expect(standing.connection.isClosed()).toBe(false);
  });

  it.each(["exchange", "exchange_store"])("of %s: bearers come again once it is started anew", async (name) => {
    expect(await rotate(name)).toMatchObject({ code: 0 });
    await reload();
    await expect.poll(() => hosts.get("exchange")?.service("exchange").ready()).toBe(false);
    await restart("exchange");
    await (await alice.connect()).connection.close();
  });

  it("of the operator: the command line goes on, auth needs no restart, and the former key enters no more", async () => {
    const former = await loadCreds(space.secrets, space.space, "operator");
    expect(await rotate("operator")).toMatchObject({ code: 0 });
    await reload();
    // `auth` looks at the published users at most every five seconds.
    await expect
      .poll(() => meshJson(space, "actor", "list"), { timeout: 10_000, interval: 250 })
      .toMatchObject({
        code: 0,
        answer: [{ owner: alice.owner, state: "active" }],
      });
    const entering = space.enter(
      "former",
      { jwt: former.jwt, key: keyPairFromSeed(former.seed) },
      { reconnect: false },
    );
    await expect(entering).rejects.toMatchObject({ code: "unauthenticated" });
  });

  it("of a gateway: its next start asks under the new key, which the exchange believes", async () => {
    expect(await rotate("gateway_public")).toMatchObject({ code: 0 });
    await reload();
    const client = await space.client("gateway_public");
    await expect.poll(async () => (await client.call(jwks, {})).keys.length, { timeout: 10_000 }).toBe(1);
  });

  it("closes nobody else's connection", async () => {
    await standing.connection.flush();
    expect(standing.connection.isClosed()).toBe(false);
  });
});
