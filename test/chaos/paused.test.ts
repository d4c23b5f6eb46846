/** The holder is stopped in the middle of a retirement and loses its claim; when it goes on, nothing of it is taken. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { newNonce, systemPorts } from "../../shared/ports.ts";
import { type Plane, planeRows } from "../../shared/rows/plane.ts";
import { loadCreds } from "../../shared/secrets/keys.ts";
import { Owner } from "../../shared/tokens.ts";
import type { TestSpace } from "../kit/space.ts";
import { credentialStates, lifecycle, named, rowsOf } from "../services/auth/lifecycles.ts";
import { stored } from "../services/auth/scene.ts";
import { violations } from "./invariants.ts";
import { Replica } from "./replica.ts";
import { PATIENCE, ROUNDS, startChaos } from "./space.ts";

/** What it was about to write: the revocation of a row, or the end. */
const PLACES = ["cred.", "frontier."];

let space: TestSpace;
const replicas: Replica[] = [];
beforeAll(async () => {
  space = await startChaos();
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.kill()));
  await space.stop();
});

async function serving(slot: string, pausesBefore?: string): Promise<Replica> {
  const replica = await Replica.serving(space, slot, pausesBefore === undefined ? {} : { pausesBefore });
  replicas.push(replica);
  return replica;
}

/** Ends the connection that a claim names, as the broker does with one whose pings fail. */
async function disconnect({ ledger }: Plane): Promise<void> {
  const creds = await loadCreds(space.secrets, space.space, "custodian_system");
  const key = keyPairFromSeed(creds.seed);
  const system = await space.enter("system", { jwt: creds.jwt, key });
  const reply = `_INBOX_${key.public}.${newNonce(systemPorts)}`;
  const options = { timeout: 2_000, noMux: true, reply };
  const subject = `$SYS.REQ.SERVER.${ledger.serverId}.KICK`;
  await system.request(subject, JSON.stringify({ cid: ledger.cid }), options);
  await system.close();
}

const plane = (): Promise<Plane> => stored(space, planeRows.key({}));
const places = Array.from({ length: ROUNDS }, () => PLACES).flat();

it.each(places.map((prefix, index) => [prefix, index] as const))(
  "a commit of %s* that a stopped holder sends late is refused",
  { timeout: 120_000 },
  async (prefix, index) => {
    const of = await lifecycle(space, { owner: Owner.parse("local"), kind: "interactive" });
    const paused = await serving(`paused-${index}`, prefix);
    await paused.says("this replica runs retirements");
    const claim = await plane();
    const asked = space.operator.call(actorRevoke, named(of), { deadlineMs: 60_000, once: true }).catch(() => {});
    await paused.stopped();
    expect((await rowsOf(space, of)).gate?.state).toBe("frozen");

    const next = await serving(`next-${index}`);
    await next.says("stands by");
    expect((await plane()).claimId).toBe(claim.claimId); // stopped is not gone
    await disconnect(claim);
    await vi.waitFor(async () => expect((await rowsOf(space, of)).head?.state).toBe("retired"), PATIENCE);
    expect(await plane()).toMatchObject({ generation: claim.generation + 1, state: "held" });
    const before = await space.store.lastSeq("auth");

    paused.goOn();
    await paused.says("retirement not finished");
    await paused.says("stands by");
    // The broker itself had the last word: the commit was sent, and the claim's row had moved.
    expect(paused.lines.find((line) => line.includes("retirement not finished"))).toContain('"err":"moved: plane');
    expect(paused.lines.filter((line) => line.includes('"msg":"retired"'))).toEqual([]);
    expect(await space.store.lastSeq("auth")).toBe(before);
    expect(await credentialStates(space, { uid: of.uid })).toEqual(["revoked"]);
    expect(await violations(space.store)).toEqual([]);
    await Promise.all([paused.stop(), next.stop()]);
    void asked;
  },
);
