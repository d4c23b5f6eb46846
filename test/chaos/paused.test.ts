/** The holder is stopped in the middle of a retirement and loses its claim; when it goes on, nothing of it is taken. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
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
import { Replicas } from "./replica.ts";
import { PATIENCE, ROUNDS, startChaos } from "./space.ts";

/** What it was about to write: the revocation of a row, or the end. */
const PLACES = ["cred.", "frontier."];
const SERVERS = [...new Set(ROUNDS.map(({ servers }) => servers))];

/** Ends the connection that a claim names, as the broker does with one whose pings fail. */
async function disconnect(space: TestSpace, { ledger }: Plane): Promise<void> {
  const creds = await loadCreds(space.secrets, space.space, "custodian_system");
  const key = keyPairFromSeed(creds.seed);
  const system = await space.enter("system", { jwt: creds.jwt, key });
  const reply = `_INBOX_${key.public}.${newNonce(systemPorts)}`;
  const options = { timeout: 2_000, noMux: true, reply };
  const subject = `$SYS.REQ.SERVER.${ledger.serverId}.KICK`;
  await system.request(subject, JSON.stringify({ cid: ledger.cid }), options);
  await system.close();
}

describe.each(SERVERS)("on servers: %i", { timeout: 120_000, retry: 0 }, (servers) => {
  let space: TestSpace;
  let replicas: Replicas;
  beforeAll(async () => {
    space = await startChaos({ servers });
    replicas = new Replicas(space);
  });
  afterAll(async () => {
    await replicas.stop();
    await space.stop();
  });

  const plane = (): Promise<Plane> => stored(space, planeRows.key({}));
  const places = ROUNDS.filter((round) => round.servers === servers).flatMap(() => PLACES);

  it.each(places.map((prefix, index) => [prefix, index] as const))(
    "a commit of %s* that a stopped holder sends late is refused",
    async (prefix, index) => {
      const of = await lifecycle(space, { owner: Owner.parse("local"), kind: "interactive" });
      const paused = await replicas.serving(`paused-${index}`, { pausesBefore: prefix });
      await paused.says("this replica runs retirements");
      const claim = await plane();
      const asked = space.operator.call(actorRevoke, named(of), { deadlineMs: 60_000, once: true }).catch(() => {});
      await paused.stopped();
      expect((await rowsOf(space, of)).gate?.state).toBe("frozen");

      const next = await replicas.serving(`next-${index}`);
      await next.says("stands by");
      expect((await plane()).claimId).toBe(claim.claimId); // stopped is not gone
      await disconnect(space, claim);
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
});
