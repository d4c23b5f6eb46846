import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemPorts } from "../../../shared/ports.ts";
import { type Folder, openFolder } from "../../../shared/secrets/folder.ts";
import { type IdpPin, PinFile } from "../../../shared/secrets/pins.ts";
import {
  announceLoopback,
  readLoopback,
  type SpaceFiles,
  type SpaceSettings,
  settingsDocument,
  spaceFiles,
  withdrawLoopback,
} from "../../../shared/secrets/settings.ts";
import { Space } from "../../../shared/tokens.ts";

const space = Space.parse("demo");
const settings: SpaceSettings = {
  ver: 1,
  space,
  storeIdentity: "here",
  broker: { advertised: "nats://127.0.0.1:4222", tlsRequired: false },
  gateway: { loopbackPort: 4280 },
};
const pin: IdpPin = {
  url: "https://idp.example",
  issuer: "https://idp.example",
  audience: "mesh",
  jwksUri: "https://idp.example/jwks",
};

let folder: Folder;
let files: SpaceFiles;
beforeEach(async () => {
  folder = await openFolder(await mkdtemp(join(tmpdir(), "settings-")));
  files = spaceFiles(folder, space);
});
afterEach(() => rm(folder.path, { recursive: true, force: true }));

const refusal = (reason: string) =>
  expect.objectContaining({ code: "failed-precondition", reason: expect.stringContaining(reason) });

describe("settings", () => {
  it("are made once and read back", async () => {
    await expect(files.settings("here")).rejects.toThrowError(refusal("space.64656d6f/space.json: is not there"));
    expect(await files.createSettings(settings)).toBe(true);
    expect(await files.createSettings({ ...settings, gateway: { loopbackPort: 1 } })).toBe(false);
    expect(await files.settings("here")).toEqual(settings);
  });

  it("refuse another secret store, and another space's folder", async () => {
    await files.createSettings(settings);
    await expect(files.settings("elsewhere")).rejects.toThrowError(refusal("is of another secret store"));
    await spaceFiles(folder, Space.parse("Demo")).createSettings(settings);
    await expect(spaceFiles(folder, Space.parse("Demo")).settings("here")).rejects.toThrowError(
      refusal("is of another space"),
    );
  });

  it.each<[string, object]>([
    ["an unknown field", { more: true }],
    ["another version", { ver: 2 }],
    ["an unknown field of the broker", { broker: { ...settings.broker, user: "x" } }],
    ["no scheme", { broker: { ...settings.broker, advertised: "127.0.0.1:4222" } }],
    ["no servers allowed", { broker: { ...settings.broker, allowedServers: [] } }],
    ["a port of 0", { gateway: { loopbackPort: 0 } }],
    ["a public URL without its port", { gateway: { loopbackPort: 1, publicUrl: "https://mesh.example" } }],
    ["a provisioning URL of http", { agentProvisioningUrl: "http://mesh.example" }],
    ["development: false", { development: false }],
  ])("refuse %s", async (_what, change) => {
    const bytes = new TextEncoder().encode(JSON.stringify({ ...settings, ...change }));
    expect(() => settingsDocument.decode("space.json", bytes)).toThrowError(refusal("space.json: /"));
  });
});

describe("pins", () => {
  const decode = (...pins: unknown[]) =>
    PinFile.decode("idp.json", new TextEncoder().encode(JSON.stringify({ ver: 1, pins })));
  const jwk = { kty: "OKP", crv: "Ed25519", x: "AAAA", kid: "one" } as const;
  const { jwksUri: _, ...fixed } = pin;

  it.each<[string, IdpPin]>([
    ["fetched keys", pin],
    ["keys of its own", { ...fixed, keys: [jwk] }],
    ["a loopback address", { ...pin, url: "http://127.0.0.1:9", jwksUri: "http://[::1]:9/jwks", development: true }],
    ["more algorithms", { ...pin, algorithms: ["RS256", "ES256"] }],
  ])("accept %s", (_what, good) => {
    expect(decode(good).pins).toHaveLength(1);
  });

  it.each<[string, unknown[]]>([
    ["none", []],
    ["nine", Array.from({ length: 9 }, (_, i) => ({ ...pin, issuer: `${i}` }))],
    ["one issuer twice", [pin, pin]],
    ["both sources of keys", [{ ...pin, keys: [jwk] }]],
    ["no source of keys", [fixed]],
    ["a private key", [{ ...fixed, keys: [{ ...jwk, d: "AAAA" }] }]],
    ["one kid twice", [{ ...fixed, keys: [jwk, jwk] }]],
    ["http", [{ ...pin, url: "http://idp.example" }]],
    ["localhost", [{ ...pin, jwksUri: "http://localhost/jwks" }]],
    ["a name that only looks like an address", [{ ...pin, jwksUri: "http://127.0.0.1.example/jwks" }]],
    ["a password in a URL", [{ ...pin, url: "https://a:b@idp.example" }]],
    ["HS256", [{ ...pin, algorithms: ["HS256"] }]],
    ["no algorithm", [{ ...pin, algorithms: [] }]],
    ["an unknown field", [{ ...pin, insecure: true }]],
  ])("refuse %s", (_what, pins) => {
    expect(() => decode(...pins)).toThrowError(refusal("idp.json: /"));
  });
});

describe("instances and the loopback face", () => {
  it("draw an instance id once per slot", async () => {
    const [one, two] = await Promise.all([files.instanceId("1", systemPorts), files.instanceId("1", systemPorts)]);
    expect(one).toBe(two);
    expect(await files.instanceId("2", systemPorts)).not.toBe(one);
    await expect(files.instanceId("../1", systemPorts)).rejects.toThrowError(refusal("a slot is"));
  });

  it("refuse an instance file that others may read", async () => {
    await files.instanceId("1", systemPorts);
    const path = join(folder.path, "space.64656d6f/instance/auth.3.json");
    await writeFile(path, "{}", { mode: 0o644 });
    await expect(files.instanceId("3", systemPorts)).rejects.toThrowError(refusal(`${path}: has mode 0644`));
  });

  it("announce the face, replacing a dead one's, and withdraw it", async () => {
    const face = { ver: 1, url: "http://127.0.0.1:4280", pid: 1, cap: "a".repeat(43) } as const;
    await announceLoopback(folder, space, face);
    await announceLoopback(folder, space, { ...face, pid: 2 });
    expect(await readLoopback(folder, space)).toEqual({ ...face, pid: 2 });
    await withdrawLoopback(folder, space);
    await withdrawLoopback(folder, space);
    expect(await readLoopback(folder, space)).toBeUndefined();
  });
});
