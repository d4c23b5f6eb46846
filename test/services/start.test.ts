import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AuthServiceInputs } from "../../services/inputs.ts";
import { type AuthService, type Environment, startAuthService, startServices } from "../../services/start.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { HOST, RESCAN_MS } from "../../shared/limits.ts";
import { createLog } from "../../shared/log.ts";
import { newUid, type Ports, systemPorts } from "../../shared/ports.ts";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { AccountNkey } from "../../shared/tokens.ts";
import { freePorts } from "../kit/broker.ts";
import { type Ground, startGround } from "../kit/ground.ts";
import { pin } from "../kit/logins.ts";

let ground: Ground;
let account: AccountNkey;
const running: AuthService[] = [];

beforeAll(async () => {
  ground = await startGround({ streams: false, pins: [pin] });
  account = (await loadSecret(ground.secrets, ground.space, SECRET.publicKeys)).accounts.space;
  await ground.roots.space.close(); // nobody can say whose it is, so no sweep would prove anything
  await start({ services: ["custodian"] });
});
afterAll(async () => {
  for (const authority of running) await authority.close();
  await ground.stop();
});

const environment = (more: Partial<Environment> = {}): Environment => ({
  ports: systemPorts,
  log: createLog("silent"),
  development: false,
  signal: new AbortController().signal,
  ...more,
});

const inputs = (more: Partial<AuthServiceInputs> = {}): AuthServiceInputs => ({
  context: { accountPublicKey: account, lifecycleUid: newUid(systemPorts) },
  space: ground.space,
  servers: ground.servers,
  store: ground.secrets,
  storeIdentity: ground.secrets.identity,
  stateDir: ground.stateDir,
  ...more,
});

async function start(more: Partial<AuthServiceInputs> = {}, around: Partial<Environment> = {}): Promise<AuthService> {
  const authority = await startServices(inputs(more), environment(around));
  running.push(authority);
  return authority;
}

/** A minute is over at once. */
const hasty: Ports = {
  ...systemPorts,
  sleep: (ms, signal) => systemPorts.sleep(ms === HOST.storeWaitMs ? 50 : ms, signal),
};

describe("an embedded authority", () => {
  it("serves, drains, and closes every connection that it opened", async () => {
    const [port = 0] = await freePorts(1);
    const authority = await start({ port });
    expect(authority.readiness).toMatchObject({ state: "ready" });
    const labels = authority.connections().map(({ label }) => label);
    expect(labels).toEqual(expect.arrayContaining(["serve:auth", "store:exchange", "callout", "gateway:loopback"]));

    const capability = { headers: { authorization: `Bearer ${authority.cap}` } };
    expect((await fetch(`${authority.url}/ready`, capability)).status).toBe(200);
    expect((await fetch(`${authority.url}/jwks`, capability)).status).toBe(200);

    await authority.drain();
    expect(authority.readiness.state).toBe("draining");
    await authority.close();
    expect(await authority.closed).toEqual({ reason: "closed" });
    expect(authority.connections().every(({ ended }) => ended)).toBe(true);
    await expect(fetch(`${authority.url}/health`)).rejects.toThrow();
    await authority.close();
  });

  it("is superseded by another start of its slot, and says so", async () => {
    const former = await start({ services: ["auth"] });
    const latter = await start({ services: ["auth"] });
    expect(await former.closed).toEqual({ reason: "superseded" });
    expect(latter.readiness.state).toBe("ready");
    await latter.close();
  });

  it("closes itself once a stream that it uses has changed its shape", async () => {
    let ahead = 0;
    const ports = { ...systemPorts, monotonic: () => systemPorts.monotonic() + ahead };
    const authority = await start({ services: ["exchange"] }, { ports });
    const api = async (ask: string, body?: object) => {
      const subject = `$JS.API.STREAM.${ask}.KV_cotal_connect_${ground.space}`;
      const answer = await ground.roots.authority.request(subject, body && JSON.stringify(body), { timeout: 5_000 });
      return answer.json<{ config: object }>();
    };
    const { config } = await api("INFO");
    await api("UPDATE", { ...config, max_msgs: 1_000 });
    ahead = RESCAN_MS;
    expect(await authority.closed).toEqual({ reason: "drift" });
    expect(authority.readiness).toMatchObject({ state: "unavailable", reason: "exchange: drift" });
    await api("UPDATE", config);
    await expect(start({ services: ["exchange"] })).resolves.toMatchObject({ readiness: { state: "ready" } });
  });

  it("keeps its instance in the store where there is no state folder", async () => {
    const keys = new Map<string, Uint8Array>();
    const { identity, get } = ground.secrets;
    const { files } = ground;
    const store = {
      identity,
      get: async (key: string) => keys.get(key) ?? (await get(key).catch(() => undefined)),
      create: async (key: string, value: Uint8Array) => !keys.has(key) && !!keys.set(key, value),
      put: async () => {},
    };
    const prefix = `auth/space.${Buffer.from(ground.space).toString("hex")}`;
    const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
    keys.set(`${prefix}/space.json`, encode(ground.settings));
    keys.set(`${prefix}/idp.json`, encode(await files.pins()));
    keys.set(`${prefix}/sentinel.creds`, new TextEncoder().encode((await files.sentinel()).text));
    const { stateDir: _, ...folderless } = inputs({ services: ["auth"], instance: "stored", store });
    const authority = await startServices(folderless, environment());
    running.push(authority);
    expect([...keys.keys()]).toContain(`${prefix}/instance.auth.stored.json`);
    await authority.close();
  });

  it("refuses another account than the space's own before it connects", async () => {
    const context = { ...inputs().context, accountPublicKey: AccountNkey.parse(createKeyPair("account").public) };
    await expect(startAuthService(inputs({ context }))).rejects.toMatchObject({ code: "failed-precondition" });
  });

  it("gives up for want of a broker, having closed what it opened", async () => {
    const [port] = await freePorts(1);
    const lost = start({ servers: `nats://127.0.0.1:${port}`, services: ["exchange"] }, { ports: hasty });
    await expect(lost).rejects.toMatchObject({ code: "unavailable" });
  });

  it("gives up when it is asked to", async () => {
    const [port] = await freePorts(1);
    const stop = new AbortController();
    const asked = start({ servers: `nats://127.0.0.1:${port}`, services: ["callout"] }, { signal: stop.signal });
    stop.abort();
    await expect(asked).rejects.toMatchObject({ code: "unavailable" });
  });
});
