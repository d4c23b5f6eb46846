/** Streams restored from a backup bring back what was revoked since; README's procedure takes it back before anybody comes in (lifecycles §9). */
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { rotateCreds, rotateIssuer } from "../../services/offline/rotate.ts";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { USERS, type UserName } from "../../shared/credentials/users.ts";
import { systemPorts } from "../../shared/ports.ts";
import { loadCreds, loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { ROOT, runnable } from "../docs/code-blocks.ts";
import { run } from "../interop/run.ts";
import { everythingUser } from "../kit/ground.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { requestId } from "../services/auth/lifecycles.ts";

const SERVICES = ["custodian", "auth", "exchange", "callout"] as const;
const ports = systemPorts;

let space: TestSpace;
let backup: string;
let program: string;
beforeAll(async () => {
  backup = await mkdtemp(join(tmpdir(), "backup-"));
  space = await startSpace({ authTimeoutS: 1 });
  program = join(backup, "rotate-signing.ts");
  await writeFile(join(backup, "package.json"), '{"type":"module"}');
  await writeFile(
    program,
    (await runnable("docs/identity.md", "rotate-signing.ts")).replaceAll('from "./', `from "${ROOT}`),
  );
});
afterAll(async () => {
  await space.stop();
  await rm(backup, { recursive: true, force: true });
});

/** `docs/identity.md`, the data signing key: a new one, and no previous. */
async function renewSigningKey(): Promise<void> {
  for (const step of ["add", "drop"]) {
    const args = ["--import", import.meta.resolve("tsx"), program, space.stateDir, space.space, step];
    expect(await run(process.execPath, args, { ms: 20_000, cwd: ROOT })).toMatchObject({ code: 0 });
  }
}

it("nobody comes back who was admitted before, and who was revoked since is revoked again", async () => {
  const { broker, stateDir, secrets } = space;
  const target = { stateDir, space: space.space, ports };
  const signed = everythingUser((await loadSecret(secrets, space.space, SECRET.serviceKeys)).dataAccount);
  const services = await space.host(SERVICES);
  const alice = await space.person("alice");
  const bearer = await alice.bearer();
  await (await alice.connectWith(bearer)).connection.close();
  await services.stop();
  await broker.kill("SIGTERM");
  await cp(join(broker.dir, "store"), join(backup, "store"), { recursive: true });

  await broker.restart();
  const since = await space.host(SERVICES);
  const { owner, actor, uid: lifecycleUid } = alice;
  const revoke = (client = space.operator) =>
    client.call(actorRevoke, { requestId: requestId(), owner, actor, lifecycleUid });
  expect(await revoke()).toMatchObject({ retired: true });
  await since.stop();
  await broker.kill("SIGTERM");
  await rm(join(broker.dir, "store"), { recursive: true });
  await cp(join(backup, "store"), join(broker.dir, "store"), { recursive: true });

  await renewSigningKey();
  const inSpace = (Object.keys(USERS) as UserName[]).filter((name) => USERS[name].account === "space");
  for (const name of inSpace) await rotateCreds({ ...target, name, permissionsOf });
  const { keys } = await loadSecret(secrets, space.space, SECRET.issuer);
  for (const { kid } of keys) await rotateIssuer({ ...target, change: { step: "compromised", kid } });
  const conf = await readFile(join(stateDir, "broker", "broker.conf"), "utf8");
  await broker.restart();
  await broker.reload(`authorization { timeout: 1 }\n${conf}`);
  const after = await space.host(SERVICES, () => ({ instance: "after" }));

  expect((await alice.row())?.value.state).toBe("active"); // the fault itself
  await expect(alice.connectWith(bearer)).rejects.toMatchObject({ code: "unauthenticated" });
  await expect(space.enter("test", signed)).rejects.toMatchObject({ code: "unauthenticated" });
  expect(await revoke(await space.client("operator"))).toMatchObject({ retired: true });
  expect((await alice.row())?.value.state).toBe("revoked");
  const creds = await loadCreds(secrets, space.space, "exchange");
  await (await space.enter("test", { jwt: creds.jwt, key: keyPairFromSeed(creds.seed) })).close();
  await after.stop();
}, 60_000);
