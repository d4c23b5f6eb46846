import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startExchange } from "../../../services/exchange/start.ts";
import { TrustKeeper } from "../../../services/exchange/trust.ts";
import { publishNext } from "../../../services/offline/issuer-steps.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { trustRows } from "../../../shared/rows/connect.ts";
import { type IssuerFile, newIssuerFile, newIssuerKey } from "../../../shared/secrets/issuer.ts";
import { newOwnerSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { type SecretStore, secretKey } from "../../../shared/secrets/store.ts";
import { Space } from "../../../shared/tokens.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { pin } from "../../kit/logins.ts";
import { startSpace } from "../../kit/space.ts";
import { openStore, type TestStore } from "../../kit/store.ts";
import { startExchangeSpace } from "./asking.ts";

const ports = systemPorts;
const log = pino({ level: "silent" });

/** Secrets in memory; `files` are those of one space. */
class Secrets implements SecretStore {
  readonly identity = "test";
  readonly files: Map<string, Uint8Array>;

  constructor(files = new Map<string, Uint8Array>()) {
    this.files = files;
  }

  async get(key: string) {
    return this.files.get(key);
  }

  async create(key: string, value: Uint8Array) {
    if (this.files.has(key)) return false;
    this.files.set(key, value);
    return true;
  }

  async put(key: string, value: Uint8Array) {
    this.files.set(key, value);
  }
}

describe("trust", () => {
  let broker: Broker;
  const stores: TestStore[] = [];
  let spaces = 0;

  beforeAll(async () => {
    broker = await startBroker();
  });
  afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())));
  afterAll(() => broker.stop());

  /** A space nobody has an exchange for yet. */
  async function fresh() {
    spaces += 1;
    const opened = await openStore(broker.url, { space: `space${spaces}`, streams: ["connect"] });
    stores.push(opened);
    const { store, space } = opened;
    const secrets = new Secrets();
    const key = (file: string) => secretKey(space, file);
    const deps = { space, store, ports, log };
    const write = (file: IssuerFile, to = secrets) =>
      to.put(key(SECRET.issuer.file), SECRET.issuer.document.encode(file));
    const read = (): IssuerFile => {
      const bytes = secrets.files.get(key(SECRET.issuer.file));
      if (!bytes) throw new Error("no issuer");
      return SECRET.issuer.document.decode("issuer", bytes);
    };
    return {
      space,
      secrets,
      key,
      read,
      write,
      open: (from: SecretStore = secrets, more: object = {}) => TrustKeeper.open({ ...deps, secrets: from, ...more }),
      trust: async () => (await store.read(trustRows.key({})))?.value,
      seq: () => store.lastSeq("connect"),
    };
  }

  async function refusal(work: Promise<unknown>): Promise<string> {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof AuthorityError)) throw new Error("not refused", { cause: error });
    expect(error.message).toBe("the state refuses the start");
    expect(error.code).toBe("failed-precondition");
    return error.reason ?? "";
  }

  it("is made at the first start, with secret and key, and adopted at each later one", async () => {
    const { open, trust, secrets, read, seq } = await fresh();
    const first = await open();
    expect(await trust()).toEqual({
      v: 1,
      rev: 1,
      issuer: expect.stringMatching(/^urn:cotal:auth:space\d+$/),
      activeKid: read().activeKid,
      keys: first.keys,
      ownerCommitment: expect.stringMatching(/^sha256:/),
    });
    expect(first.issuing.key.kid).toBe(read().activeKid);
    const before = [await seq(), new Map(secrets.files)];
    const second = await open();
    expect(Buffer.from(second.ownerSecret)).toEqual(Buffer.from(first.ownerSecret));
    expect([await seq(), secrets.files]).toEqual(before);
  });

  it("is decided by the row where several start at once on one state, and all agree", async () => {
    const { open } = await fresh();
    const keepers = await Promise.all(Array.from({ length: 5 }, () => open()));
    expect(new Set(keepers.map(({ issuing }) => issuing.key.kid)).size).toBe(1);
    expect(new Set(keepers.map(({ ownerSecret }) => Buffer.from(ownerSecret).toString("hex"))).size).toBe(1);
  });

  it("refuses the loser of two states that start at once", async () => {
    const { open } = await fresh();
    const settled = await Promise.allSettled([open(new Secrets()), open(new Secrets())]);
    expect(settled.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  it("refuses another owner secret, another issuer key, or none, and generates nothing", async () => {
    const { open, secrets, key, space, seq } = await fresh();
    await open();
    const before = await seq();
    const ownerFile = key(SECRET.ownerSecret.file);
    const issuerFile = key(SECRET.issuer.file);
    const without = (...files: string[]) => {
      const copy = new Secrets(new Map(secrets.files));
      for (const file of files) copy.files.delete(file);
      return copy;
    };
    const otherSecret = without();
    otherSecret.files.set(ownerFile, SECRET.ownerSecret.document.encode(newOwnerSecret(ports)));
    const otherKey = without();
    otherKey.files.set(issuerFile, SECRET.issuer.document.encode(newIssuerFile(space, ports)));
    const otherIssuer = without();
    const foreign = newIssuerFile(Space.parse("other"), ports);
    otherIssuer.files.set(issuerFile, SECRET.issuer.document.encode(foreign));
    for (const state of [without(ownerFile), without(issuerFile), new Secrets(), otherSecret, otherKey, otherIssuer]) {
      const files = new Map(state.files);
      expect(await refusal(open(state))).toMatch(/restore it from backup$/);
      expect(state.files).toEqual(files);
    }
    expect(await seq()).toBe(before);
  });

  it("follows the file when its rev rises, and so does another replica", async () => {
    const { open, read, write, trust } = await fresh();
    const [one, two] = [await open(), await open()];
    await write(publishNext(read(), newIssuerKey(ports)));
    await Promise.all([one.refresh(), two.refresh()]);
    expect((await trust())?.rev).toBe(2);
    expect(one.keys).toHaveLength(2);
    expect(two.keys).toEqual(one.keys);
    expect(two.ready).toBe(true);
  });

  it("keeps a replica with an older file from signing, until it has the newer one", async () => {
    const { open, read, write, secrets } = await fresh();
    const behind = new Secrets();
    const ahead = await open();
    for (const [name, bytes] of secrets.files) behind.files.set(name, bytes);
    const replica = await open(behind);
    await write(publishNext(read(), newIssuerKey(ports)));
    await ahead.refresh();
    await replica.refresh();
    expect(replica.ready).toBe(false);
    expect(() => replica.issuing).toThrow(expect.objectContaining({ code: "unavailable" }));
    const late = await open(behind);
    expect(late.ready).toBe(false);
    await write(read(), behind);
    await replica.refresh();
    expect(replica.ready).toBe(true);
  });

  it("signs nothing under a file that cannot be read, or is another at the same rev", async () => {
    const { open, read, secrets, key, write, space } = await fresh();
    const keeper = await open();
    const good = read();
    secrets.files.set(key(SECRET.issuer.file), Buffer.from("{"));
    await expect(keeper.refresh()).rejects.toMatchObject({ code: "failed-precondition" });
    expect(keeper.ready).toBe(false);
    await write(good);
    await keeper.refresh();
    expect(keeper.ready).toBe(true);
    await write(newIssuerFile(space, ports));
    await expect(keeper.refresh()).rejects.toMatchObject({ code: "failed-precondition" });
    expect(keeper.ready).toBe(false);
  });

  it("looks every 30 s, until it is told to stop", async () => {
    const { open, read, write } = await fresh();
    const waits: number[] = [];
    const stop = new AbortController();
    let wake = () => {};
    const sleep = (ms: number) =>
      new Promise<void>((resolve) => {
        waits.push(ms);
        wake = resolve;
      });
    const keeper = await open(undefined, { ports: { ...ports, sleep } });
    const following = keeper.follow(stop.signal);
    await write(publishNext(read(), newIssuerKey(ports)));
    wake();
    await expect.poll(() => keeper.rev).toBe(2);
    stop.abort();
    wake();
    await following;
    expect(waits).toEqual([30_000, 30_000]);
  });
});

describe("the start of an exchange", () => {
  it("refuses a development provider without --dev", async () => {
    const space = await startSpace({ pins: [{ ...pin, development: true }] });
    try {
      const deps = await space.deps("exchange");
      await expect(startExchange(deps)).rejects.toMatchObject({ code: "failed-precondition" });
      expect(deps.owned.list().filter(({ ended }) => !ended)).toEqual([]);
      expect(await space.store.lastSeq("connect")).toBe(0);
      const service = await startExchange({ ...deps, development: true });
      expect(service.ready()).toBe(true);
      await service.close();
    } finally {
      await space.stop();
    }
  });

  it("waits for streams that auth has not made yet, and ends with the start that is given up", async () => {
    const space = await startSpace({ pins: [pin], streams: false });
    try {
      const giveUp = new AbortController();
      const lines: string[] = [];
      const deps = await space.deps("exchange", { signal: giveUp.signal, lines });
      const starting = startExchange(deps);
      await expect.poll(() => lines.some((line) => line.includes("waiting"))).toBe(true);
      giveUp.abort();
      await expect(starting).rejects.toMatchObject({ code: "unavailable" });
      expect(deps.owned.list().filter(({ ended }) => !ended)).toEqual([]);
    } finally {
      await space.stop();
    }
  });

  it("refuses a stream of another shape", async () => {
    const space = await startSpace({ pins: [pin], streams: false });
    try {
      const config = { name: "KV_cotal_auth_demo", subjects: ["$KV.cotal_auth_demo.>"], max_msgs: 10 };
      await space.roots.authority.request("$JS.API.STREAM.CREATE.KV_cotal_auth_demo", JSON.stringify(config));
      await expect(startExchange(await space.deps("exchange"))).rejects.toMatchObject({ code: "failed-precondition" });
    } finally {
      await space.stop();
    }
  });

  it("ends ready, drains, and is not ready without its broker", async () => {
    const { space, service, stop } = await startExchangeSpace();
    try {
      expect(service.ready()).toBe(true);
      await space.broker.kill("SIGKILL");
      await expect.poll(() => service.ready()).toBe(false);
      await space.broker.restart();
      await expect.poll(() => service.ready(), { timeout: 10_000 }).toBe(true);
      await service.drain();
      expect(service.ready()).toBe(false);
    } finally {
      await stop();
    }
  });
});
