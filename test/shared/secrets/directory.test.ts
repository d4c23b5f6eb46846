import { chmod, chown, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemPorts } from "../../../shared/ports.ts";
import { directoryStore, identify } from "../../../shared/secrets/directory.ts";
import { openFolder } from "../../../shared/secrets/folder.ts";
import { adoptOrCreate, type SecretStore, secretKey } from "../../../shared/secrets/store.ts";
import { Space } from "../../../shared/tokens.ts";

const space = Space.parse("demo");
const key = secretKey(space, "issuer.json");
const bytes = (text: string) => new TextEncoder().encode(text);
const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

let parent: string;
let state: string;
let store: SecretStore;
const at = (path: string) => join(state, path);

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "secrets-"));
  state = join(parent, "state");
  await identify(await openFolder(state, { make: true }), systemPorts);
  store = await directoryStore(state);
});
afterEach(() => rm(parent, { recursive: true, force: true }));

const refusal = (path: string, why: string) =>
  expect.objectContaining({ code: "failed-precondition", reason: `${path}: ${why}` });

describe("the secret store in a folder", () => {
  it("keeps its identity, and refuses a folder that has none", async () => {
    expect(store.identity).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    await identify(await openFolder(state), systemPorts);
    expect((await directoryStore(state)).identity).toBe(store.identity);
    await expect(directoryStore(join(state, "auth"))).rejects.toThrowError(refusal(at("auth"), "is not there"));
    await writeFile(at("store.id"), "../x\n");
    await expect(directoryStore(state)).rejects.toThrowError(refusal(at("store.id"), "is no identity"));
  });

  it("gives back what it was given, in a file for its user alone", async () => {
    expect(await store.get(key)).toBeUndefined();
    expect(await store.create(key, bytes("one"))).toBe(true);
    expect(await store.get(key)).toEqual(bytes("one"));
    expect(await mode(at(key))).toBe("600");
    expect([await mode(state), await mode(at("auth")), await mode(at("store.id"))]).toEqual(["700", "700", "600"]);
  });

  it("lets others read the public keys", async () => {
    await store.create(secretKey(space, "public.json"), bytes("{}"));
    expect(await mode(at(secretKey(space, "public.json")))).toBe("644");
  });

  it("creates once, whoever is faster, and leaves nothing beside", async () => {
    const values = Array.from({ length: 8 }, (_, i) => bytes(`value ${i}`));
    const won = await Promise.all(values.map((value) => store.create(key, value)));
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(await store.get(key)).toEqual(values[won.indexOf(true)]);
    expect(await readdir(at("auth/space.64656d6f"))).toEqual(["issuer.json"]);
  });

  it("lets concurrent first users adopt one value", async () => {
    const used = await Promise.all(["a", "b", "c"].map((text) => adoptOrCreate(store, key, () => bytes(text))));
    expect(new Set(used.map((value) => new TextDecoder().decode(value))).size).toBe(1);
  });

  it("replaces whole, keeping the mode", async () => {
    await store.create(key, bytes("one"));
    await store.put(key, bytes("two"));
    expect(await store.get(key)).toEqual(bytes("two"));
    expect(await mode(at(key))).toBe("600");
    expect(await readdir(at("auth/space.64656d6f"))).toEqual(["issuer.json"]);
  });

  it("limits a view to its own keys", async () => {
    const view = await directoryStore(state, [key]);
    const outside = expect.objectContaining({ code: "internal" });
    const other = secretKey(space, "owner-secret.json");
    expect(await view.get(key)).toBeUndefined();
    for (const call of [view.get(other), view.create(other, bytes("x")), view.put(other, bytes("x"))]) {
      await expect(call).rejects.toThrowError(outside);
    }
    expect(await store.get(other)).toBeUndefined();
  });

  it.each([
    "../store.id",
    "auth/space.64656d6f/../x",
    "auth/space.zz/x",
    "/etc/passwd",
    "store.id",
    "broker/root.json",
    "",
  ])("has no key %s", async (bad) => {
    expect(() => store.get(bad)).toThrowError(expect.objectContaining({ code: "failed-precondition" }));
  });

  it.each([0o604, 0o640, 0o660, 0o610])("refuses a secret with mode %o", async (wrong) => {
    await store.create(key, bytes("one"));
    await chmod(at(key), wrong);
    await expect(store.get(key)).rejects.toThrowError(refusal(at(key), `has mode 0${wrong.toString(8)}, at most 0700`));
  });

  it("refuses a public file that others may write", async () => {
    const open = secretKey(space, "public.json");
    await store.create(open, bytes("{}"));
    await chmod(at(open), 0o664);
    await expect(store.get(open)).rejects.toThrowError(refusal(at(open), "has mode 0664, at most 0755"));
  });

  it("refuses a symbolic link in place of a file, of a folder on the way, and of the state folder", async () => {
    await store.create(key, bytes("one"));
    await rename(at(key), at("moved"));
    await symlink(at("moved"), at(key));
    await expect(store.get(key)).rejects.toThrowError(refusal(at(key), "is a symbolic link"));
    await rename(at("auth"), at("elsewhere"));
    await symlink(at("elsewhere"), at("auth"));
    await expect(store.get(key)).rejects.toThrowError(refusal(at("auth"), "is a symbolic link"));
    await expect(store.create(key, bytes("two"))).rejects.toThrowError(refusal(at("auth"), "is a symbolic link"));
    await symlink(state, join(parent, "link"));
    await expect(directoryStore(join(parent, "link"))).rejects.toThrowError(
      refusal(join(parent, "link"), "is a symbolic link"),
    );
  });

  it("refuses what is no regular file", async () => {
    await mkdir(at(key), { recursive: true, mode: 0o700 });
    await expect(store.get(key)).rejects.toThrowError(refusal(at(key), "is no regular file"));
  });

  it("refuses a folder that others may enter or write", async () => {
    await store.create(key, bytes("one"));
    await chmod(at("auth"), 0o770);
    await expect(store.get(key)).rejects.toThrowError(refusal(at("auth"), "has mode 0770, at most 0755"));
    await chmod(at("auth"), 0o700);
    await chmod(state, 0o750);
    await expect(store.get(key)).rejects.toThrowError(refusal(state, "has mode 0750, at most 0700"));
    await chmod(state, 0o700);
  });

  it.runIf(process.getuid?.() === 0)("refuses a file of another user", async () => {
    await store.create(key, bytes("one"));
    await chown(at(key), 65_534, 65_534);
    await expect(store.get(key)).rejects.toThrowError(refusal(at(key), "belongs to another user"));
  });

  it("does not take an unreadable place for absence", async () => {
    await writeFile(at("auth"), "", { mode: 0o600 });
    await expect(store.get(key)).rejects.toThrowError(refusal(at("auth"), "is no folder"));
  });
});
