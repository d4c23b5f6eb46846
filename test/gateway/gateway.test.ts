import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openFaces } from "../../gateway/start.ts";
import { startExchange } from "../../services/exchange/start.ts";
import { endpoint, type Request } from "../../services/host/handler.ts";
import { PublishedUsers } from "../../services/host/provisioned.ts";
import { serveService } from "../../services/host/serve.ts";
import type { RunningService } from "../../services/service.ts";
import { actorRenew } from "../../shared/contracts/auth/actors/actor-renew.ts";
import { authDescribe } from "../../shared/contracts/auth/describe.ts";
import { authContracts } from "../../shared/contracts/auth.ts";
import { OwnedConnections } from "../../shared/nats/owned.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { type LoopbackFace, readLoopback } from "../../shared/secrets/settings.ts";
import { freePorts } from "../kit/broker.ts";
import { type OidcProvider, startOidcProvider } from "../kit/idp.ts";
import { ownerOf } from "../kit/logins.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { activate } from "../services/exchange/ledger.ts";

let provider: OidcProvider;
let space: TestSpace;
let exchange: RunningService;
let process_: ChildProcess;
let face: LoopbackFace;
let log = "";

const main = fileURLToPath(new URL("../../gateway/main.ts", import.meta.url));
const launch = (...flags: string[]) =>
  spawn(process.execPath, [
    "--import",
    "tsx",
    main,
    "--state",
    space.stateDir,
    "--servers",
    space.broker.url,
    ...flags,
  ]);

const loopbackFile = async () => readLoopback(await openFolder(space.stateDir), space.space);

beforeAll(async () => {
  provider = await startOidcProvider();
  const [loopbackPort = 0, publicPort = 0] = await freePorts(2);
  const publicUrl = `http://127.0.0.1:${publicPort}`;
  space = await startSpace({ pins: [provider.pin], settings: { gateway: { loopbackPort, publicPort, publicUrl } } });
  exchange = await startExchange(await space.deps("exchange"));
  process_ = launch();
  process_.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const stdout = process_.stdout;
  if (!stdout) throw new Error("no stdout");
  const [line] = await once(stdout, "data");
  expect(JSON.parse(String(line))).toMatchObject({ ready: true, pid: process_.pid });
  const written = await loopbackFile();
  if (!written) throw new Error("no capability file");
  face = written;
});
afterAll(async () => {
  process_.kill("SIGKILL");
  await exchange.close();
  await space.stop();
  await provider.stop();
});

const loopback = (path: string, init: RequestInit = {}) =>
  fetch(face.url + path, { ...init, headers: { authorization: `Bearer ${face.cap}`, ...init.headers } });
const open = (path: string, init: RequestInit = {}) => fetch(face.publicUrl + path, init);
const json = (body: object): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

describe("a gateway process", () => {
  it("says where it is in a file of mode 0600", () => {
    expect(face).toEqual({
      ver: 1,
      url: `http://127.0.0.1:${space.settings.gateway.loopbackPort}`,
      pid: process_.pid,
      cap: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      publicUrl: space.settings.gateway.publicUrl,
    });
  });

  it("is ready once exchange answers", async () => {
    expect(await (await loopback("/ready")).json()).toEqual({ ready: true });
    expect(await (await open("/health")).json()).toEqual({ status: "ok" });
  });

  it("gives keys and discovery to anybody", async () => {
    const keys: { keys: object[] } = JSON.parse(await (await open("/jwks")).text());
    expect(keys.keys).toHaveLength(1);
    const bundle: object = JSON.parse(await (await open("/.well-known/cotal-mesh")).text());
    expect(bundle).toMatchObject({
      space: "demo",
      userAuth: {
        idp: { issuer: provider.pin.issuer },
        endpoints: { url: space.settings.gateway.publicUrl },
      },
    });
  });

  it("turns a real login into a bearer, through either face", async () => {
    const proof = await provider.login("alice");
    const refused = await open("/exchange", json({ actor: "cli", idpToken: proof }));
    expect(refused.status).toBe(403);
    const owner = await ownerOf(space, "alice", provider.pin.issuer);
    expect(JSON.parse(await refused.text())).toEqual({
      error: `this login has no active actor of that name: owner ${owner}, actor cli`,
      code: "permission-denied",
    });
    await activate(space, owner, "cli");
    for (const through of [open, loopback]) {
      const response = await through("/exchange", json({ actor: "cli", idpToken: proof }));
      expect(response.status).toBe(200);
      const reply: object = JSON.parse(await response.text());
      expect(reply).toEqual({ token: expect.any(String), owner, exp: expect.any(Number) });
    }
    const bad = await open("/exchange", json({ actor: "cli", idpToken: `${proof.slice(0, -8)}AAAAAAAA` }));
    expect(bad.status).toBe(401);
    expect(log).not.toContain(proof);
    expect(log).not.toContain(face.cap);
  });

  it("asks the authority as itself, with the login in the auth slot", async () => {
    const asked: Pick<Request, "args" | "caller" | "idpToken">[] = [];
    const reply = {
      requestId: "r".repeat(22),
      owner: `u_${"a".repeat(26)}`,
      actor: "cli",
      lifecycleUid: "l".repeat(26),
      exp: 1,
      renewed: false,
    };
    const served = await serveService({
      space: space.space,
      service: "auth",
      description: "stands in",
      version: "0.0.0",
      connection: space.roots.space,
      incarnation: { instanceId: newUid(systemPorts), epoch: 0, registrationRevision: 0 },
      contracts: authContracts,
      describe: authDescribe,
      endpoints: [
        endpoint(actorRenew, async ({ args, caller, idpToken }) => {
          asked.push({ args, caller, ...(idpToken === undefined ? {} : { idpToken }) });
          return reply as never;
        }),
      ],
      state: () => "ready",
      provisioned: await PublishedUsers.load(space.secrets, space.space, systemPorts),
      ports: systemPorts,
      log: pino({ level: "silent" }),
    });
    try {
      const { renewed: _, exp: __, ...rest } = reply;
      const request = { kind: "actor-renew", ...rest };
      const response = await open("/manager-service-authority", json({ idpToken: "a.b.c", request }));
      expect([response.status, JSON.parse(await response.text())]).toEqual([200, reply]);
      expect(asked).toEqual([
        {
          args: request,
          caller: expect.objectContaining({ owner: "local", actor: "gateway_public" }),
          idpToken: "a.b.c",
        },
      ]);
      const bad = await open(
        "/manager-service-authority",
        json({ idpToken: "a.b.c", request: { ...request, more: 1 } }),
      );
      expect([bad.status, JSON.parse(await bad.text())]).toEqual([
        400,
        { error: expect.any(String), code: "bad-request", outcome: "not-executed" },
      ]);
    } finally {
      await served.drain();
    }
    const gone = await open("/manager-service-authority", json({ idpToken: "a", request: { kind: "actor-renew" } }));
    expect([gone.status, JSON.parse(await gone.text())]).toEqual([
      503,
      { error: expect.any(String), code: "unavailable", outcome: "not-executed" },
    ]);
  });

  it("loads no user of a face that it does not open", async () => {
    const owned = new OwnedConnections({ servers: space.broker.url }, systemPorts);
    const asked: string[] = [];
    const all = await directoryStore(space.stateDir);
    const secrets = {
      get: (key: string) => {
        asked.push(key);
        return all.get(key);
      },
    };
    const faces = await openFaces({
      space: space.space,
      port: 0,
      secrets,
      owned,
      ports: systemPorts,
      log: pino({ level: "silent" }),
    });
    expect(asked.map((key) => key.split("/").at(-1))).toEqual(["gateway_loopback.creds"]);
    expect(owned.list().map(({ label }) => label)).toEqual(["gateway:loopback"]);
    expect(faces.map(({ ready }) => ready())).toEqual([true]);
    await Promise.all(faces.map((each) => each.close()));
    await Promise.all(owned.closeSteps("").map(({ run }) => run()));
  });

  it("leaves nothing open when a face cannot be bound", async () => {
    const owned = new OwnedConnections({ servers: space.broker.url }, systemPorts);
    const publicFace = { port: space.settings.gateway.publicPort ?? 0, url: "http://127.0.0.1:1", trustedProxy: false };
    const opening = openFaces({
      space: space.space,
      port: 0,
      publicFace,
      secrets: space.secrets,
      owned,
      ports: systemPorts,
      log: pino({ level: "silent" }),
    });
    await expect(opening).rejects.toMatchObject({ code: "unavailable" });
    expect(owned.list().filter(({ ended }) => !ended)).toEqual([]);
  });

  it("is unavailable without its broker, and comes back with it", async () => {
    await space.broker.kill("SIGKILL");
    await expect.poll(async () => (await loopback("/ready")).status).toBe(503);
    expect((await open("/health")).status).toBe(200);
    await space.broker.restart();
    await expect.poll(async () => (await loopback("/ready")).status, { timeout: 15_000 }).toBe(200);
  });

  it("stops on SIGTERM: the file goes, the process exits 0", async () => {
    process_.kill("SIGTERM");
    const [code] = await once(process_, "exit");
    expect(code).toBe(0);
    expect(await loopbackFile()).toBeUndefined();
    await expect(open("/health")).rejects.toThrow();
  });

  it("exits 2 where there is no such space or flag, and 0 when it is stopped before it started", async () => {
    const exits = async (child: ChildProcess) => child.exitCode ?? (await once(child, "exit"))[0];
    const codes = await Promise.all([exits(launch("--space", "other")), exits(launch("--nonsense"))]);
    expect(codes).toEqual([2, 2]);
    const waiting = launch("--servers", "nats://127.0.0.1:9");
    const stderr = waiting.stderr;
    if (!stderr) throw new Error("no stderr");
    let said = "";
    stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await expect.poll(() => said, { timeout: 10_000 }).toContain("waiting");
    waiting.kill("SIGTERM");
    expect(await exits(waiting)).toBe(0);
  });
});
