/** The broker drops whoever does not read fast enough: half a scan counts for nothing, and the claim is tried for anew (lifecycles §9). */
import { connect } from "@nats-io/transport-node";
import { expect, it, vi } from "vitest";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { newNonce, systemPorts } from "../../shared/ports.ts";
import { planeRows } from "../../shared/rows/plane.ts";
import { type Stage, stageRows } from "../../shared/rows/stage.ts";
import { loadCreds } from "../../shared/secrets/keys.ts";
import { create } from "../../shared/store/message.ts";
import { Store } from "../../shared/store/store.ts";
import { Owner, type Principal, type Uid } from "../../shared/tokens.ts";
import { startBroker } from "../kit/broker.ts";
import { freshUid, PRINCIPAL } from "../kit/rows.ts";
import { startSpace } from "../kit/space.ts";
import { openStore } from "../kit/store.ts";
import { lifecycle, named } from "../services/auth/lifecycles.ts";
import { stored } from "../services/auth/scene.ts";

/** About 14 KiB. */
const bulky = (opId: Uid): Stage => ({
  v: 1,
  opId,
  kind: "retirement",
  gate: `gate.${opId}`,
  fromGeneration: 1,
  principal: PRINCIPAL,
  evicted: Array.from({ length: 400 }, (_, at) => `${PRINCIPAL}${at}` as Principal),
  startedBy: "test",
  at: 1,
  phase: "frozen",
});

it("a scan whose connection is dropped is refused whole", async () => {
  const broker = await startBroker({ config: "max_payload: 65536\nmax_pending: 65536" });
  const on = await openStore(broker.url, { streams: ["auth"] });
  for (let n = 0; n < 200; n += 1) {
    const opId = freshUid();
    await on.store.commit([create(stageRows.key({ opId }), bulky(opId))], on.work());
  }
  const scan = await connect({ servers: broker.url, reconnect: false });
  const both = { authority: on.connection, space: on.connection };
  const slow = new Store({ ...on, ports: systemPorts, connections: both, scanConnections: { authority: scan } });
  await expect(slow.scan(stageRows, {})).rejects.toMatchObject({ code: "unavailable" });
  await scan.closed();
  expect(broker.log()).toContain("Slow Consumer Detected");
  await on.close();
  await broker.stop();
});

it("`auth` opens the connections of its scans anew: fenced meanwhile, it claims again on proof and goes on", async () => {
  const space = await startSpace({ services: ["custodian", "auth"], authTimeoutS: 1 });
  const [host] = space.hosts;
  const claim = await stored(space, planeRows.key({}));
  const scans = host?.owned.list().filter(({ label }) => label.startsWith("scan:")) ?? [];
  expect(scans.map(({ label }) => label).sort()).toEqual(["scan:authority", "scan:space"]);
  const creds = await loadCreds(space.secrets, space.space, "custodian_system");
  const key = keyPairFromSeed(creds.seed);
  const system = await space.enter("system", { jwt: creds.jwt, key });
  for (const { tuple } of scans) {
    // As a slow consumer's, the socket is closed by the broker.
    const options = { timeout: 2_000, noMux: true, reply: `_INBOX_${key.public}.${newNonce(systemPorts)}` };
    await system.request(`$SYS.REQ.SERVER.${tuple?.serverId}.KICK`, JSON.stringify({ cid: tuple?.cid }), options);
  }
  await vi.waitFor(async () => expect((await stored(space, planeRows.key({}))).generation).toBe(claim.generation + 1), {
    timeout: 15_000,
    interval: 20,
  });
  expect(host?.lines.some((line) => line.includes('"reason":"fenced"'))).toBe(true);
  expect((await stored(space, planeRows.key({}))).ledger.userNkey).not.toBe(claim.ledger.userNkey);
  const of = await lifecycle(space, { owner: Owner.parse("local"), kind: "interactive" });
  expect(await space.operator.call(actorRevoke, named(of))).toMatchObject({ retired: true });
  await space.stop();
});
