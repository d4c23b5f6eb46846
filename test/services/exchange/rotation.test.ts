import { createRemoteJWKSet, customFetch, decodeProtectedHeader, jwtVerify } from "jose";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { openFaces } from "../../../gateway/start.ts";
import { validateBearer } from "../../../shared/bearer.ts";
import { BearerKeys } from "../../../shared/bearer-keys.ts";
import { exchangeUser } from "../../../shared/contracts/exchange/exchange-user.ts";
import { BEARER } from "../../../shared/limits.ts";
import { OwnedConnections, runCloseSteps } from "../../../shared/nats/owned.ts";
import { type Ports, systemPorts } from "../../../shared/ports.ts";
import { trustRows } from "../../../shared/rows/connect.ts";
import { freePorts } from "../../kit/broker.ts";
import { login, ownerOf } from "../../kit/logins.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";
import { meshJson } from "../cli/cli.ts";
import { activate } from "./ledger.ts";

/** Wall clock of everything in this process, moved by hand; those who wait for the issuer's next look wake with it. */
class Clock {
  #now = Date.now();
  readonly #sleepers = new Set<{ readonly at: number; wake(): void }>();
  readonly ports: Ports = {
    ...systemPorts,
    now: () => this.#now,
    sleep: (ms, signal) => (ms === BEARER.issuerMs ? this.#sleep(ms, signal) : systemPorts.sleep(ms, signal)),
  };

  constructor() {
    vi.useFakeTimers({ toFake: ["Date"], now: this.#now });
  }

  get now(): number {
    return this.#now;
  }

  /** Resolves once whoever woke has looked and waits again. */
  async advance(ms: number): Promise<void> {
    this.#now += ms;
    vi.setSystemTime(this.#now);
    const waiting = this.#sleepers.size;
    for (const sleeper of [...this.#sleepers].filter(({ at }) => at <= this.#now)) {
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
    // Not `vi.waitFor`: it moves a clock that is not real.
    while (this.#sleepers.size < waiting) await new Promise((resolve) => setImmediate(resolve));
  }

  #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper = { at: this.#now + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }
}

/** What an HTTP cache does between a client and us: it believes `max-age`. */
function cachingFetch(): typeof fetch {
  let kept: { readonly body: string; readonly until: number } | undefined;
  return async (...request) => {
    if (!kept || Date.now() >= kept.until) {
      const response = await fetch(...request);
      const maxAge = Number(/max-age=(\d+)/.exec(response.headers.get("cache-control") ?? "")?.[1]);
      kept = { body: await response.text(), until: Date.now() + maxAge * 1_000 };
    }
    return new Response(kept.body, { headers: { "content-type": "application/json" } });
  };
}

const kidOf = (token: string): string => decodeProtectedHeader(token).kid ?? "";
const issuer = "urn:cotal:auth:demo";
type Verify = (token: string) => Promise<unknown>;

/** A client as the contract wants it: it keeps keys for ten minutes and asks for an unknown one every thirty seconds. */
function keyClient(url: string, fetching: typeof fetch): Verify {
  const keys = createRemoteJWKSet(new URL(`${url}/jwks`), {
    cacheMaxAge: 600_000,
    cooldownDuration: 30_000,
    [customFetch]: fetching,
  });
  return (token) => jwtVerify(token, keys, { issuer, audience: "demo", algorithms: ["EdDSA"] });
}

const trustOf = async ({ store }: TestSpace) => {
  const trust = await store.read(trustRows.key({}));
  if (!trust) throw new Error("no trust");
  return trust.value;
};

describe("an issuer that rotates under load", () => {
  let clock: Clock;
  let space: TestSpace;
  let url: string;
  let close: () => Promise<void>;
  beforeAll(async () => {
    clock = new Clock();
    space = await startSpace();
    await space.host(["exchange"], () => ({ ports: clock.ports }));
    await clock.advance(17_000); // the two look at different times
    await space.host(["exchange"], () => ({ ports: clock.ports }));
    const owned = new OwnedConnections({ servers: space.servers }, systemPorts);
    const [port = 0] = await freePorts(1);
    url = `http://127.0.0.1:${port}`;
    const faces = await openFaces({
      space: space.space,
      port: 0,
      publicFace: { port, url, trustedProxy: false },
      secrets: space.secrets,
      owned,
      ports: systemPorts,
      log: pino({ level: "silent" }),
    });
    close = async () => {
      await Promise.all(faces.map((face) => face.close()));
      await runCloseSteps(owned.closeSteps(""));
    };
  });
  afterAll(async () => {
    await close();
    await space.stop();
    vi.useRealTimers();
  });

  it("refuses each step that is early, and no client fails to verify a bearer that is good", async () => {
    const row = await activate(space, await ownerOf(space, "alice"), "cli");
    const shared = cachingFetch();
    const clients: Verify[] = [keyClient(url, cachingFetch()), keyClient(url, shared)];
    const callout = new BearerKeys(() => trustOf(space), { monotonic: () => clock.now });
    clients.push((token) => validateBearer(token, space.space, (kid) => callout.of(kid), clock.ports));
    const failures: string[] = [];
    const kids = new Set<string>();
    const live: { readonly token: string; readonly exp: number }[] = [];
    const began = clock.now;

    const step = async (): Promise<void> => {
      const auth = login("alice", { exp: Math.floor(clock.now / 1_000) + 3_600 });
      const signed = await Promise.all(
        [900, 900, 60, 900].map((ttlSec) => space.gateway.call(exchangeUser, { actor: row.actor, ttlSec }, { auth })),
      );
      for (const { token, exp } of signed) {
        kids.add(kidOf(token));
        live.push({ token, exp });
      }
      while ((live[0]?.exp ?? Number.POSITIVE_INFINITY) * 1_000 <= clock.now) live.shift();
      const good = live.filter(({ exp }) => exp * 1_000 > clock.now);
      const tried = [...good.slice(0, 3), ...good.slice(-4)];
      const verifying = clients.flatMap((verify) =>
        tried.map(({ token }) =>
          verify(token).catch((error: unknown) => {
            failures.push(`${(clock.now - began) / 1_000} s, ${kidOf(token)}: ${error}`);
          }),
        ),
      );
      await Promise.all(verifying);
    };
    /** In steps of ten seconds; each minute another client comes, half of them through one shared cache. */
    const until = async (ms: number): Promise<void> => {
      while (clock.now < ms) {
        await clock.advance(Math.min(10_000, ms - clock.now));
        const minute = Math.floor((clock.now - began) / 60_000);
        if (clients.length < 3 + minute) clients.push(keyClient(url, minute % 2 ? shared : cachingFetch()));
        if (clients.length > 8) clients.splice(3, 1);
        await step();
      }
    };
    const rotate = (...argv: string[]) => meshJson(space, "rotate", "issuer", ...argv);

    await until(began + 60_000);
    const former = (await trustOf(space)).activeKid;
    const published = clock.now;
    expect(await rotate("--next")).toMatchObject({ code: 0, answer: { rev: 2 } });
    await until(published + 364_000);
    expect(await rotate("--activate")).toMatchObject({ code: 1, answer: { error: { code: "failed-precondition" } } });
    expect([...kids]).toEqual([former]);
    await until(published + 365_000);
    const stopped = clock.now;
    expect(await rotate("--activate")).toMatchObject({ code: 0, answer: { rev: 3 } });
    await until(stopped + 60_000);
    expect((await trustOf(space)).activeKid).not.toBe(former);
    expect(kids.size).toBe(2);
    expect(await rotate("--retire", former)).toMatchObject({
      code: 1,
      answer: { error: { code: "failed-precondition" } },
    });
    await until(stopped + 1_205_000);
    expect(await rotate("--retire", former)).toMatchObject({ code: 0, answer: { rev: 4 } });
    await until(clock.now + 400_000);
    expect((await trustOf(space)).keys.map(({ kid }) => kid)).not.toContain(former);
    expect(failures).toEqual([]);
  });
});

describe("an issuer key that is compromised", () => {
  let space: TestSpace;
  afterEach(() => space.stop());

  it("signs nothing more after the next look, and its bearers enter no more after 60 s", async () => {
    let look = (): void => {};
    let later = 0;
    const sleep: Ports["sleep"] = (ms, signal) =>
      ms === BEARER.issuerMs ? new Promise((resolve) => (look = resolve)) : systemPorts.sleep(ms, signal);
    space = await startSpace({
      services: ["custodian", "auth", "exchange", "callout"],
      change: (service) => ({
        ports: {
          ...systemPorts,
          ...(service === "exchange" ? { sleep } : {}),
          ...(service === "callout" ? { monotonic: () => performance.now() + later } : {}),
        },
      }),
    });
    const alice = await space.person("alice");
    const stolen = await alice.bearer();
    const before = await alice.connectWith(stolen);
    const kid = kidOf(stolen);

    expect(await meshJson(space, "rotate", "issuer", "--compromised", kid)).toMatchObject({
      code: 0,
      answer: { rev: 2 },
    });
    look();
    await expect.poll(async () => (await trustOf(space)).rev).toBe(2);
    await expect.poll(async () => kidOf(await alice.bearer())).not.toBe(kid);
    later += BEARER.trustMs;
    await expect(alice.connectWith(stolen)).rejects.toMatchObject({ code: "unauthenticated" });
    const fresh = await alice.connect();
    expect([fresh.connection.isClosed(), before.connection.isClosed()]).toEqual([false, false]);
  });
});
