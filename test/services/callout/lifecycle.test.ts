import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startCallout } from "../../../services/callout/start.ts";
import { Guard, type Watched } from "../../../services/host/guard.ts";
import { AuthorityError, unavailable } from "../../../shared/errors.ts";
import { runCloseSteps } from "../../../shared/nats/owned.ts";
import { type Ports, systemPorts } from "../../../shared/ports.ts";
import { createMissing } from "../../../shared/store/shape.ts";
import { freshNonce, grant, install, space } from "./people.ts";
import { startSpace, type TestSpace } from "./space.ts";

/** For what a busy broker takes its time over. */
const PATIENT = { timeout: 10_000 };

describe("a callout", () => {
  let at: TestSpace;
  beforeAll(async () => {
    at = await startSpace();
  });
  afterAll(() => at.stop());

  test("waits for its streams, is ready, survives a broker's restart, drains and ends", async () => {
    await at.authority.request("$JS.API.STREAM.DELETE.KV_cotal_issued_demo", "", PATIENT);
    const lines: string[] = [];
    const deps = await at.deps(lines);
    const starting = startCallout(deps);
    await vi.waitFor(() => expect(lines.join("")).toContain("KV_cotal_issued_demo does not exist"));
    await createMissing({ space, connection: () => at.authority }, ["issued"]);
    const service = await starting;
    expect(service.ready()).toBe(true);
    expect(deps.owned.list().map(({ label }) => label)).toEqual(["store:callout", "work:callout", "callout"]);

    const who = await install(at, grant());
    const connects = async () => (await at.connect(await at.bearers.bearer(who), freshNonce())).close();
    await connects();
    const servers = () => [...deps.owned.list().map(({ tuple }) => tuple?.serverId), at.authority.info?.server_id];
    const [former] = servers();
    await at.broker.restart();
    // All on the new one: what is published between two attempts to connect is lost.
    const back = () => servers().every((server) => server !== undefined && server !== former);
    await vi.waitFor(() => expect(back()).toBe(true), { timeout: 10_000 });
    await vi.waitFor(() => expect(service.ready()).toBe(true), { timeout: 10_000 });
    await connects();

    await service.close();
    expect(service.ready()).toBe(false);
    expect(await service.ended).toBe("closed");
    await runCloseSteps(deps.owned.closeSteps("callout", "work:callout", "store:callout"));
    await deps.owned.ended();
  });

  test("that cannot start leaves no connection behind", async () => {
    const deps = await at.deps();
    await at.authority.request("$JS.API.STREAM.DELETE.KV_cotal_issued_demo", "", PATIENT);
    const config = { name: "KV_cotal_issued_demo", subjects: ["$KV.cotal_issued_demo.>"], max_msgs_per_subject: 1 };
    await at.authority.request("$JS.API.STREAM.CREATE.KV_cotal_issued_demo", JSON.stringify(config), PATIENT);
    await expect(startCallout(deps)).rejects.toMatchObject({ code: "failed-precondition" });
    expect(deps.owned.list().every(({ ended }) => ended)).toBe(true);
  });

  test("gives up waiting when its start is given up", async () => {
    const deps = await at.deps();
    await at.authority.request("$JS.API.STREAM.DELETE.KV_cotal_issued_demo", "", PATIENT);
    const giveUp = new AbortController();
    const starting = startCallout({ ...deps, signal: giveUp.signal });
    giveUp.abort();
    await expect(starting).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("the guard", () => {
  function guarded() {
    let now = 0;
    let wake: (() => void)[] = [];
    const ports: Ports = {
      ...systemPorts,
      monotonic: () => now,
      sleep: () => new Promise((resolve) => wake.push(resolve)),
    };
    const connection: { -readonly [K in keyof Watched]: Watched[K] } = { connected: true, connects: 1 };
    const state: { failure?: AuthorityError; proofs: number } = { proofs: 0 };
    const log = { error() {}, warn() {}, info() {} } as never;
    const guard = new Guard({
      connections: [connection],
      async prove() {
        state.proofs += 1;
        if (state.failure) throw state.failure;
      },
      ports,
      log,
      signal: new AbortController().signal,
    });
    const advance = async (ms: number) => {
      now += ms;
      for (const resolve of wake.splice(0)) resolve();
      wake = [];
      await new Promise((resolve) => setImmediate(resolve));
    };
    return { guard, connection, state, advance };
  }

  test("proves again every 30 s and after a reconnect", async () => {
    const { connection, state, advance } = guarded();
    await advance(29_999);
    expect(state.proofs).toBe(0);
    await advance(1);
    expect(state.proofs).toBe(1);
    connection.connects += 1;
    await advance(500);
    expect(state.proofs).toBe(2);
  });

  test("ends with drift", async () => {
    const { guard, state, advance } = guarded();
    state.failure = new AuthorityError("failed-precondition", "drift");
    await advance(30_000);
    expect(guard.sound).toBe(false);
    expect(await guard.ended).toBe("drift");
  });

  test("is unsound while nothing can be said, and sound again", async () => {
    const { guard, state, advance } = guarded();
    state.failure = unavailable("timeout");
    await advance(30_000);
    expect(guard.sound).toBe(false);
    delete state.failure;
    await advance(500);
    expect(guard.sound).toBe(true);
  });

  test("ends once the broker is lost for 120 s", async () => {
    const { guard, connection, advance } = guarded();
    connection.connected = false;
    expect(guard.sound).toBe(false);
    await advance(500);
    await advance(119_999);
    connection.connected = true;
    await advance(500);
    connection.connected = false;
    await advance(500);
    await advance(120_000);
    expect(await guard.ended).toBe("broker-lost");
  });
});
