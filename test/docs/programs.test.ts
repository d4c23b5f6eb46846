/** The programs that the pages show do what the pages say. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rotateCreds } from "../../services/offline/rotate.ts";
import { createKeyPair, keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { connectUser, type User } from "../../shared/nats/connect.ts";
import { systemPorts } from "../../shared/ports.ts";
import { loadCreds, loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { run } from "../interop/run.ts";
import { freePorts } from "../kit/broker.ts";
import { everythingUser, type Ground, startGround } from "../kit/ground.ts";
import { pin } from "../kit/logins.ts";
import { ROOT, runnable } from "./code-blocks.ts";

let folder: string;
let ground: Ground;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "programs-"));
  await writeFile(join(folder, "package.json"), '{"type":"module"}'); // as the project's own
  ground = await startGround({ pins: [pin] });
});
afterAll(async () => {
  await ground.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Writes a page's program; what it imports from `./` is this project's, wherever the program lies. */
async function program(page: string, file: string, change = (text: string) => text): Promise<string[]> {
  const path = join(folder, file);
  const text = (await runnable(page, file)).replaceAll('from "./', `from "${ROOT}`);
  await writeFile(path, change(text));
  return ["--import", import.meta.resolve("tsx"), path];
}

describe("README's embedding program", () => {
  it("serves until it is told to stop, and says why it ended", async () => {
    const [port] = await freePorts(1);
    const constants = { '"acme"': '"demo"', '"state"': JSON.stringify(ground.stateDir), "4280": String(port) };
    const args = await program("README.md", "embed.ts", (text) =>
      Object.entries({ ...constants, '"nats://127.0.0.1:4222"': JSON.stringify(ground.broker.url) }).reduce(
        (all, [from, to]) => {
          expect(all).toContain(from);
          return all.replace(from, to);
        },
        text,
      ),
    );
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
    let [said, logged] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      logged += text;
    });
    const exited = once(child, "exit");
    const ended = exited.then(() => Promise.reject(new Error(logged)));
    try {
      await Promise.race([once(child.stdout, "data"), ended]);
      expect(said).toMatch(new RegExp(`^ready http://127\\.0\\.0\\.1:${port} \\d+\n$`));
      const health = await fetch(`http://127.0.0.1:${port}/ready`);
      expect(await health.json()).toEqual({ ready: true });
      child.kill("SIGTERM");
      expect(await exited).toEqual([0, null]);
      expect(said).toMatch(/\nclosed\n$/);
    } finally {
      ended.catch(() => {});
      child.kill("SIGKILL");
    }
  });
});

describe("the rotation of the data signing key", () => {
  const step = async (name: "add" | "drop") => {
    const args = await program("docs/operating.md", "rotate-by-hand.ts");
    return run(process.execPath, [...args, ground.stateDir, "demo", "data", name], { ms: 20_000, cwd: ROOT });
  };
  const reload = async () =>
    ground.broker.reload(await readFile(join(ground.stateDir, "broker", "broker.conf"), "utf8"));
  const dataAccount = async () => (await loadSecret(ground.secrets, ground.space, SECRET.serviceKeys)).dataAccount;

  async function admitted(user: User): Promise<boolean> {
    const connecting = connectUser({ servers: ground.servers, name: "t", user: () => user, reconnect: false });
    return connecting.then(
      async (connection) => {
        await connection.close();
        return true;
      },
      () => false,
    );
  }
  async function exchange(): Promise<User> {
    const { jwt, seed } = await loadCreds(ground.secrets, ground.space, "exchange");
    return { jwt, key: keyPairFromSeed(seed) };
  }

  it("keeps both keys good until what rests on the former one has moved, then refuses it", async () => {
    const former = everythingUser(await dataAccount());
    const old = (await dataAccount()).signingSeed;
    expect(await step("add")).toMatchObject({ code: 0, stderr: "" });
    await reload();
    expect(await dataAccount()).toMatchObject({ previousSeed: old });
    const fresh = everythingUser(await dataAccount(), createKeyPair("user"));
    for (const user of [former, fresh, await exchange()]) expect(await admitted(user)).toBe(true);
    expect((await step("add")).code).not.toBe(0);

    const { stateDir, space } = ground;
    await rotateCreds({ stateDir, space, name: "exchange", permissionsOf, ports: systemPorts });
    await reload();
    expect(await step("drop")).toMatchObject({ code: 0, stderr: "" });
    await reload();
    expect(await dataAccount()).not.toHaveProperty("previousSeed");
    expect(await admitted(former)).toBe(false);
    for (const user of [fresh, await exchange()]) expect(await admitted(user)).toBe(true);
    expect((await step("drop")).code).not.toBe(0);
  });
});
