/** Streams restored from a backup bring back what was revoked since; README's procedure takes it back before anybody comes in (lifecycles §9). */
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { writeBrokerConf } from "../../services/offline/broker-conf.ts";
import { amendAccount } from "../../services/offline/jwts.ts";
import { loadRoot, signerOf } from "../../services/offline/root.ts";
import { rotateCreds, rotateIssuer } from "../../services/offline/rotate.ts";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { createKeyPair, keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { USERS, type UserName } from "../../shared/credentials/users.ts";
import { systemPorts } from "../../shared/ports.ts";
import { storeIn } from "../../shared/secrets/directory.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { loadCreds, loadSecret, replaceSecret, SECRET } from "../../shared/secrets/keys.ts";
import { everythingUser } from "../kit/ground.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { requestId } from "../services/auth/lifecycles.ts";

const SERVICES = ["custodian", "auth", "exchange", "callout"] as const;
const ports = systemPorts;

let space: TestSpace;
let backup: string;
beforeAll(async () => {
  backup = await mkdtemp(join(tmpdir(), "backup-"));
  space = await startSpace({ authTimeoutS: 1 });
});
afterAll(async () => {
  await space.stop();
  await rm(backup, { recursive: true, force: true });
});

/** A new data signing key and no previous one: both steps of `docs/identity.md` at once. */
async function renewSigningKey(): Promise<void> {
  const folder = await openFolder(space.stateDir);
  const store = await storeIn(folder);
  const operator = signerOf((await loadRoot(folder)).operator);
  const keys = await loadSecret(store, space.space, SECRET.serviceKeys);
  const { pub } = keys.dataAccount;
  const fresh = createKeyPair("account");
  await amendAccount(folder, pub, operator, ports, (nats) => ({ ...nats, signing_keys: [fresh.public] }));
  const dataAccount = { pub, signingSeed: fresh.seed };
  await replaceSecret(store, space.space, SECRET.serviceKeys, { ...keys, dataAccount });
  await writeBrokerConf(folder, store);
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
