import type { Msg } from "@nats-io/transport-node";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { decodeJwt } from "../../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { SELF_RENEWED_MS, SelfSigned } from "../../../shared/credentials/self-signed.ts";
import { OwnedConnections, runCloseSteps } from "../../../shared/nats/owned.ts";
import { RenewedConnection } from "../../../shared/nats/renewed.ts";
import { type Ports, systemPorts } from "../../../shared/ports.ts";
import { AccountNkey, Uid } from "../../../shared/tokens.ts";
import { space } from "../../kit/bindings.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { testPorts } from "../../kit/clock.ts";

const account = createKeyPair("account");
const uid = Uid.parse("a".repeat(26));
const log = pino({ level: "silent" });

function selfSigned(ports = testPorts()) {
  const options = { space, service: "callout", uid, profile: "store", signer: account, ports } as const;
  return { ports, own: new SelfSigned({ ...options, account: AccountNkey.parse(account.public) }) };
}

test("a service's own user lives 900 s and is attributed to its instance", () => {
  const { ports, own } = selfSigned();
  const claims = decodeJwt(own.user().jwt);
  const now = Math.floor(ports.now() / 1_000);
  expect(claims).toMatchObject({ name: "store", sub: own.user().key.public, iat: now, exp: now + 900 });
  expect(claims.nats.tags).toEqual(["owner:local", "actor:callout", "principal:local.callout", `uid:${uid}`]);
});

test("it is signed anew at half-life, under the same key", () => {
  const { ports, own } = selfSigned();
  const first = own.user();
  ports.advance(449_999);
  expect(own.user().jwt).toBe(first.jwt);
  ports.advance(1);
  const second = own.user();
  expect(second.jwt).not.toBe(first.jwt);
  expect(second.key.public).toBe(first.key.public);
  expect(decodeJwt(second.jwt).exp).toBe((decodeJwt(first.jwt).exp ?? 0) + 450);
});

test("a connection is renewed under a new user although the wall clock runs a little slower", () => {
  const { ports, own } = selfSigned();
  const first = own.user();
  ports.advance(SELF_RENEWED_MS - 1_000);
  expect(own.user().jwt).not.toBe(first.jwt);
});

describe("a renewed connection", () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startBroker({ jetstream: false });
  });
  afterAll(() => broker.stop());

  const EVERY = 1_000;
  const LINGER = 7;

  async function opened() {
    const sleepers: { readonly ms: number; wake(): void }[] = [];
    const ports: Ports = {
      ...systemPorts,
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          sleepers.push({ ms, wake: resolve });
          signal?.addEventListener("abort", () => reject(signal.reason));
        }),
    };
    const { own } = selfSigned();
    const owned = new OwnedConnections({ servers: broker.url }, ports);
    const user = () => own.user();
    const life = new AbortController();
    const { signal } = life;
    const times = { everyMs: EVERY, lingerMs: LINGER };
    const options = { owned, label: "store:callout", user, ...times, ports, log, signal } as const;
    const connection = await RenewedConnection.open(options);
    /** Ends the wait of that many ms, once somebody waits. */
    const pass = async (ms: number | undefined): Promise<void> => {
      await vi.waitFor(() => {
        const at = sleepers.findIndex((sleeper) => ms === undefined || sleeper.ms === ms);
        if (at < 0) throw new Error(`nobody waits ${ms} ms`);
        for (const sleeper of sleepers.splice(at, 1)) sleeper.wake();
      });
    };
    return { owned, connection, life, pass };
  }

  test("hands over without a gap: what is in flight on the former one is still answered", async () => {
    const { owned, connection, life, pass } = await opened();
    const other = await owned.open("system", { name: "other", user: () => selfSigned().own.user(), reconnect: false });
    const asked = new Promise<Msg>((resolve) => {
      other.subscribe("q", { callback: (_error, message) => resolve(message) });
    });
    await other.flush();
    const former = connection.current();
    const answer = former.request("q", "x", { timeout: 5_000 });
    const message = await asked;
    await pass(EVERY);
    await vi.waitFor(() => expect(connection.current()).not.toBe(former));
    expect([former.isClosed(), connection.connects, connection.connected]).toEqual([false, 2, true]);
    message.respond("y");
    expect((await answer).string()).toBe("y");
    await pass(LINGER);
    await former.closed();
    life.abort();
    await runCloseSteps(owned.closeSteps("store", "system"));
  });

  test("goes on with the former one while no next one can be had, and tries again", async () => {
    const { owned, connection, life, pass } = await opened();
    const former = connection.current();
    await broker.kill();
    await vi.waitFor(() => expect(connection.connected).toBe(false));
    await pass(EVERY);
    await broker.restart();
    await vi.waitFor(() => expect(connection.connected).toBe(true), { timeout: 10_000 });
    await pass(undefined); // the wait before the next try, if the first found no broker
    await vi.waitFor(() => expect(connection.connects).toBeGreaterThan(1));
    life.abort();
    await runCloseSteps(owned.closeSteps("store"));
    expect(former.isClosed()).toBe(true);
    await owned.ended();
  });
});
