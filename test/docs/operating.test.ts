/** The keys that no command replaces are replaced as their page says, while somebody is connected. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rotateCreds } from "../../services/offline/rotate.ts";
import type { HostedService } from "../../services/service.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import type { UserName } from "../../shared/credentials/users.ts";
import { connectUser, type User } from "../../shared/nats/connect.ts";
import { systemPorts } from "../../shared/ports.ts";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { run } from "../interop/run.ts";
import { everythingUser } from "../kit/ground.ts";
import type { Host } from "../kit/hosting.ts";
import type { Connected, Person } from "../kit/person.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { ROOT, runnable } from "./code-blocks.ts";

let folder: string;
let program: string[];
let space: TestSpace;
const hosts = new Map<HostedService, Host>();
let alice: Person;
let standing: Connected;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "operating-"));
  await writeFile(join(folder, "package.json"), '{"type":"module"}'); // as the project's own
  const text = (await runnable("docs/operating.md", "rotate-by-hand.ts")).replaceAll('from "./', `from "${ROOT}`);
  await writeFile(join(folder, "rotate-by-hand.ts"), text);
  program = ["--import", import.meta.resolve("tsx"), join(folder, "rotate-by-hand.ts")];
  space = await startSpace({ services: ["custodian"], authTimeoutS: 1 });
  for (const name of ["auth", "exchange", "callout"] as const) hosts.set(name, await space.host([name]));
  alice = await space.person("alice");
  standing = await alice.connect();
});
afterAll(async () => {
  await space.stop();
  await rm(folder, { recursive: true, force: true });
});

const step = async (account: "authority" | "callout", name: "add" | "drop"): Promise<void> => {
  const ran = await run(process.execPath, [...program, space.stateDir, "demo", account, name], {
    ms: 20_000,
    cwd: ROOT,
  });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
};
const reload = async (): Promise<void> => {
  const conf = await readFile(join(space.stateDir, "broker", "broker.conf"), "utf8");
  await space.broker.reload(`authorization { timeout: 1 }\n${conf}`);
};
const restart = async (...names: HostedService[]): Promise<void> => {
  for (const name of names) {
    await hosts.get(name)?.stop();
    hosts.set(name, await space.host([name]));
  }
};
const rotate = (name: UserName) =>
  rotateCreds({ stateDir: space.stateDir, space: space.space, name, permissionsOf, ports: systemPorts });
const connects = async (): Promise<void> => (await alice.connect()).connection.close();

async function admitted(user: User): Promise<boolean> {
  const connecting = connectUser({ servers: space.servers, name: "t", user: () => user, reconnect: false });
  return connecting.then(
    async (connection) => {
      await connection.close();
      return true;
    },
    () => false,
  );
}

describe("by hand", () => {
  it("the authority signing key: both are good, then the new one alone", async () => {
    const { authorityAccount } = await loadSecret(space.secrets, space.space, SECRET.serviceKeys);
    const former = everythingUser(authorityAccount);
    await step("authority", "add");
    await reload();
    await restart("auth", "callout");
    await connects();
    expect(await admitted(former)).toBe(true);
    await rotate("exchange_store");
    await reload();
    await restart("exchange");
    await step("authority", "drop");
    await reload();
    await connects();
    expect(await admitted(former)).toBe(false);
  });

  it("the callout's keys: who is connected stays, others connect once it is started anew", async () => {
    const before = await loadSecret(space.secrets, space.space, SECRET.calloutKeys);
    await step("callout", "add");
    await reload();
    await restart("callout");
    await connects();
    await rotate("callout");
    await rotate("operator_callout");
    await reload();
    await restart("callout");
    await connects();
    const { jwt, seed } = await space.files.sentinel();
    const held = { jwt, key: keyPairFromSeed(seed) };
    const token = await alice.bearer();
    await step("callout", "drop");
    await reload();
    await restart("exchange");
    await connects();
    const name = "n".repeat(22);
    const entering = connectUser({ servers: space.servers, name, user: () => held, token, reconnect: false });
    await expect(entering).rejects.toMatchObject({ code: "unauthenticated" });
    const after = await loadSecret(space.secrets, space.space, SECRET.calloutKeys);
    expect(after.account.signingPub).not.toBe(before.account.signingPub);
    expect(standing.connection.isClosed()).toBe(false);
  });
});
