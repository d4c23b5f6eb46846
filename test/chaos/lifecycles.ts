/** Retirements, by a person's door and by an agent's, that a process is to die in. */
import { expect, vi } from "vitest";
import type { Moment } from "../../services/auth/barrier/kinds.ts";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { agentRetire } from "../../shared/contracts/auth/retirement/agent-retire.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { credRows } from "../../shared/rows/credential.ts";
import { gateRows } from "../../shared/rows/gate.ts";
import { obligationRows } from "../../shared/rows/mesh/obligation.ts";
import { fenced } from "../../shared/store/message.ts";
import { Actor, Digest, EnvelopeId } from "../../shared/tokens.ts";
import { freshCredentialId, rootCred } from "../kit/rows.ts";
import type { TestSpace } from "../kit/space.ts";
import { instance } from "../services/auth/assignments/instances.ts";
import { credentialStates, lifecycle, named, rowsOf } from "../services/auth/lifecycles.ts";
import { gateKeyOf, MANAGER, stored } from "../services/auth/scene.ts";
import { another, entry } from "./late.ts";
import { crowd, LOCAL, PATIENT, register } from "./managers.ts";
import { confirmed, leftBehind, refused } from "./scene.ts";
import { PATIENCE } from "./space.ts";
import type { Victim } from "./victims.ts";

/** Somebody who granted to a manager, which holds more rows than one commit revokes, with a request undecided. */
export async function person(space: TestSpace, step: Moment): Promise<Victim> {
  const who = await lifecycle(space, { owner: LOCAL, kind: "interactive" });
  const { owner, uid } = who;
  const grantedBy = { kind: "actor" as const, owner, actor: who.actor, lifecycleUid: uid };
  const of = await instance(space, owner, {}, grantedBy);
  if (step === "revoke") await crowd(space, of, grantedBy);
  const asker = { endpoint: MANAGER, owner, actor: Actor.parse("cli"), uid: newUid(systemPorts) };
  const obligation = obligationRows.key({ target: uid, ...asker, id: EnvelopeId.parse("request-1") });
  await space.put(obligation, {
    state: "provisional",
    opId: "request-1",
    decision: "epf",
    fingerprint: Digest.parse(`sha256:${"f".repeat(64)}`),
    sourceSeq: 1,
    route: "effects",
    mappingRevision: 1,
  });
  const victim = await retiring(space, step, who, () => space.operator.call(actorRevoke, named(who), PATIENT));
  return {
    ...victim,
    what: `a person's retirement, ${step}`,
    async again() {
      await victim.again();
      await refused("permission-denied", () => register(space, of)); // what it granted has gone with it
    },
    async check() {
      await victim.check();
      expect(new Set(await credentialStates(space, of)), step).toEqual(new Set(["revoked"]));
      expect(await stored(space, gateKeyOf(of)), step).toMatchObject({ state: "open", generation: 1 });
      expect(await stored(space, obligation), step).toMatchObject({ state: "rejected" });
    },
  };
}

export async function agent(space: TestSpace, step: Moment): Promise<Victim> {
  const who = await lifecycle(space, { owner: LOCAL });
  const victim = await retiring(space, step, who, () => space.operator.call(agentRetire, named(who), PATIENT));
  return { ...victim, what: `an agent's retirement, ${step}` };
}

async function retiring(
  space: TestSpace,
  step: Moment,
  who: Awaited<ReturnType<typeof lifecycle>>,
  ask: () => Promise<unknown>,
): Promise<Victim> {
  const { uid, opId } = who;
  const open = await entry(space, gateRows.key({ uid }));
  const left = await leftBehind(space, who);
  const credentialId = freshCredentialId();
  return {
    what: `a retirement, ${step}`,
    death: { kind: "retirement", step, opId },
    ask,
    async finish() {
      // Once it is frozen, nobody has to ask again.
      if ((await stored(space, gateRows.key({ uid }))).state === "open") await confirmed(ask, step, {});
      await vi.waitFor(async () => expect((await rowsOf(space, who)).head?.state, step).toBe("retired"), PATIENCE);
    },
    again: async () => expect(await ask(), step).toMatchObject({ retired: true }),
    async check() {
      const rows = await rowsOf(space, who);
      expect(rows, step).toMatchObject({
        gate: { state: "retired", generation: 1, op: { opId } },
        actor: { state: "revoked" },
        stage: { phase: "finished" },
        frontier: { value: { opId } },
      });
      expect(await credentialStates(space, { uid }), step).toEqual(["revoked"]);
      expect(left.isClosed(), `${step}: its connection`).toBe(true);
    },
    late: async (plane) => [
      [await another(space, opId, plane)],
      [fenced(credRows.key({ uid, credentialId }), rootCred(uid, { credentialId }), open)],
    ],
  };
}
