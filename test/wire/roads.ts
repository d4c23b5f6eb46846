/** Requests that can be made on either road, each with what must come of it: the table of `both-roads.test.ts`. */
import { sha256Hex } from "../../shared/canonical.ts";
import { agentEnroll } from "../../shared/contracts/auth/agents/enroll.ts";
import type { Input } from "../../shared/contracts/operation.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { retireOpId } from "../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../shared/errors.ts";
import type { ManagerHttp } from "../../shared/manager-http.ts";
import { newNonce, newUid, systemPorts } from "../../shared/ports.ts";
import type { Actor, Owner, Uid } from "../../shared/tokens.ts";
import { freshRunId, freshTakeoverId, type TestManager } from "../kit/manager.ts";
import type { ManagerCaller, Person } from "../kit/person.ts";
import type { TestSpace } from "../kit/space.ts";
import { openArgs, secondsAhead } from "../services/auth/manager/sessions.ts";
import { admittedRun, heldBy, markRevoked, writeStatus } from "../services/auth/runs/runs.ts";
import { proven } from "../services/auth/scene.ts";

export interface Scene {
  readonly space: TestSpace;
  readonly person: Person;
  readonly manager: TestManager;
  readonly caller: ManagerCaller;
  /** An agent of that person's, whose secret is `secret`. */
  readonly agent: { readonly owner: Owner; readonly actor: Actor; readonly lifecycleUid: Uid };
}

export interface Case {
  readonly operation: keyof ManagerHttp;
  readonly title: string;
  /** The refusal; absent: it succeeds. */
  readonly code?: ErrorCode;
  /** A request that was not made before; what it needs is made first. */
  args(scene: Scene): Promise<object> | object;
}

const key = (): string => createKeyPair("user").public;
const authority = (operation: string, more: object) => ({ kind: "manager-service-authority", operation, ...more });
const maintenance = ({ manager }: Scene, operation: string, more: object = {}) => ({
  ...manager.envelope(),
  kind: "manager-service-maintenance",
  operation,
  targetInstanceId: manager.instanceId,
  ...more,
});
const declared = ({ manager }: Scene) => ({ ...manager.envelope(), registrationProof: manager.declaration() });
const withoutAccount = ({ manager }: Scene) => {
  const { accountPublicKey: _account, processEpoch: _epoch, ...rest } = manager.proven();
  return rest;
};
const admission = ({ manager }: Scene, subject: string) => ({
  ...manager.proven(),
  kind: "manager-run-admission",
  run: { runId: freshRunId(), subject },
});
const revocation = ({ manager }: Scene, runId: string) => ({
  ...manager.proven(),
  kind: "manager-run-revoke",
  revoke: { runId, reason: "enough" },
});
const attempt = ({ manager }: Scene, runId: string, more: object = {}) => ({
  ...manager.proven(),
  kind: "manager-run-attempt",
  attempt: {
    runId,
    takeoverId: freshTakeoverId(),
    epoch: 1,
    fencingToken: 1,
    driverId: key(),
    mediatorId: key(),
    ...more,
  },
});
const operator = ({ manager }: Scene, more: object = {}) => ({
  ...manager.proven(),
  kind: "manager-run-attempt",
  operator: { id: key(), takeoverId: freshTakeoverId(), ...more },
});
const renewal = async ({ space, manager }: Scene, state: "running" | "released") => {
  const held = heldBy(manager, await admittedRun(space, manager));
  await writeStatus(space, held, { state });
  const run = { ...held, driverId: key(), mediatorId: key() };
  return { ...manager.proven(), ...authority("renewRunDriver", { run }) };
};
const retirement = (scene: Scene, opId?: string) => {
  const { owner, actor } = scene.person;
  const lifecycleUid = newUid(systemPorts);
  const target = { owner, actor, lifecycleUid };
  const { processEpoch: serveEpoch } = scene.manager.coordinates;
  const asked = { id: key(), target, opId: opId ?? retireOpId(lifecycleUid), serveEpoch };
  return { ...declared(scene), ...authority("retire", { retirement: asked }) };
};
const enrollment = (scene: Pick<Scene, "manager">, more: object = {}) => ({
  ...proven(scene.manager, "manager-managed-agent-enrollment"),
  target: { actor: `agent_${key().slice(1, 12)}`, tokenHash: sha256Hex("secret"), ...more },
});
const retained = async (scene: Scene, actorToken: string) => ({
  ...proven(scene.manager, "manager-retained-agent-validation"),
  target: scene.agent,
  actorToken,
  sentinelCreds: (await scene.space.files.sentinel()).text,
});

/** An agent of the manager's own, by a fresh name. */
export async function enrolledAgent(scene: Pick<Scene, "manager" | "person">): Promise<Scene["agent"]> {
  const { material } = await scene.person.ask(agentEnroll, enrollment(scene) as Input<typeof agentEnroll>);
  const { owner, actor, lifecycleUid } = material;
  return { owner, actor, lifecycleUid };
}
const prepared = ({ manager }: Scene, target: Scene["agent"], opId = retireOpId(target.lifecycleUid)) => ({
  ...proven(manager, "manager-managed-agent-prepare-retirement"),
  target,
  opId,
});

const good = (operation: Case["operation"], args: Case["args"], title = "that is good"): Case => ({
  operation,
  title,
  args,
});
const bad = (operation: Case["operation"], code: ErrorCode, title: string, args: Case["args"]): Case => ({
  operation,
  title,
  code,
  args,
});

export const CASES: readonly Case[] = [
  good("runAdmit", async (scene) => admission(scene, await scene.caller.request("run-start", { runId: "r" }))),
  bad("runAdmit", "permission-denied", "of what nobody asked for", (scene) =>
    admission(scene, scene.caller.subject("run-start")),
  ),
  bad("runAdmit", "permission-denied", "of no run request", (scene) => admission(scene, "no subject")),
  good("runRevoke", async (scene) => revocation(scene, await admittedRun(scene.space, scene.manager))),
  bad("runRevoke", "permission-denied", "of a run that was never let in", (scene) => revocation(scene, freshRunId())),
  good("runAttempt", async (scene) => attempt(scene, await admittedRun(scene.space, scene.manager))),
  bad("runAttempt", "conflict", "of another number", async (scene) =>
    attempt(scene, await admittedRun(scene.space, scene.manager), { epoch: 2 }),
  ),
  bad("runAttempt", "permission-denied", "of a revoked run", async (scene) => {
    const runId = await admittedRun(scene.space, scene.manager);
    await markRevoked(scene.space, runId);
    return attempt(scene, runId);
  }),
  bad("runAttempt", "bad-request", "with a number that is none", async (scene) =>
    attempt(scene, await admittedRun(scene.space, scene.manager), { epoch: 0 }),
  ),
  good("runOperator", (scene) => operator(scene)),
  bad("runOperator", "permission-denied", "of a run that was never let in", (scene) =>
    operator(scene, { runId: freshRunId() }),
  ),
  bad("runOperator", "failed-precondition", "of a step without a journal", async (scene) => {
    const runId = await admittedRun(scene.space, scene.manager);
    return operator(scene, { answers: { runId, stepKey: "main/ask#1" } });
  }),
  good("managerPrepare", ({ manager }) => ({ ...manager.envelope(), ...authority("prepare", {}) })),
  bad("managerPrepare", "permission-denied", "in another space", ({ manager }) => ({
    ...manager.envelope(),
    ...authority("prepare", {}),
    space: "elsewhere",
  })),
  good("managerActivate", ({ manager }) => {
    const contractArtifacts = [...manager.contract.documents];
    const registrationProof = manager.declaration(contractArtifacts);
    return { ...manager.envelope(), ...authority("activate", { registrationProof, contractArtifacts }) };
  }),
  bad("managerActivate", "contract-invalid", "without a cluster document", ({ manager }) => {
    const contractArtifacts = manager.contract.documents.slice(1);
    const registrationProof = manager.declaration(contractArtifacts);
    return { ...manager.envelope(), ...authority("activate", { registrationProof, contractArtifacts }) };
  }),
  good("managerRenew", (scene) => ({ ...withoutAccount(scene), ...authority("renew", {}) })),
  bad("managerRenew", "permission-denied", "with U in place of K", (scene) => ({
    ...declared(scene),
    ...authority("renew", {}),
  })),
  bad("managerRenew", "bad-request", "with one nkey twice", (scene) => {
    const { identities, ...rest } = withoutAccount(scene);
    return { ...rest, identities: { ...identities, serve: identities.executor }, ...authority("renew", {}) };
  }),
  good("managerTransferReader", (scene) => ({
    ...declared(scene),
    ...authority("transferReader", { transferReader: { id: key() } }),
  })),
  bad("managerTransferReader", "permission-denied", "with K in place of U", (scene) => ({
    ...declared(scene),
    registrationProof: scene.manager.proof,
    ...authority("transferReader", { transferReader: { id: key() } }),
  })),
  good("managerRenewStanding", ({ manager }) => ({ ...manager.proven(), ...authority("renewStandingBundle", {}) })),
  bad("managerRenewStanding", "conflict", "under another epoch", ({ manager }) => ({
    ...manager.proven(),
    processEpoch: manager.coordinates.processEpoch + 1,
    ...authority("renewStandingBundle", {}),
  })),
  good("managerRenewRun", (scene) => renewal(scene, "running")),
  bad("managerRenewRun", "conflict", "of a run that was given up", (scene) => renewal(scene, "released")),
  good("managerSession", ({ manager, person }) => openArgs(manager, person)),
  bad("managerSession", "bad-request", "of more than a day", ({ manager, person }) =>
    openArgs(manager, person, secondsAhead(90_000)),
  ),
  bad("managerSession", "expired", "that is over", ({ manager, person }) =>
    openArgs(manager, person, secondsAhead(-1)),
  ),
  good("managerRetire", (scene) => retirement(scene)),
  bad("managerRetire", "bad-request", "under an id of its own", (scene) => retirement(scene, newUid(systemPorts))),
  good("managerMaintainEvict", (scene) =>
    maintenance(scene, "evict-family-principal", {
      principals: [`${scene.person.owner}.manager_goal_${scene.manager.instanceId}`],
    }),
  ),
  bad("managerMaintainEvict", "permission-denied", "of a stranger", (scene) =>
    maintenance(scene, "evict-family-principal", { principals: [`${scene.person.owner}.stranger`] }),
  ),
  // Who asks on its own connection lives, so that this road never repairs its own.
  bad("managerMaintainReconcile", "failed-precondition", "of an open gate", (scene) =>
    maintenance(scene, "reconcile-registration"),
  ),
  good("managerScanGoals", ({ manager }) => proven(manager, "manager-goal-index-scan")),
  bad("managerScanGoals", "conflict", "under another epoch", ({ manager }) => ({
    ...proven(manager, "manager-goal-index-scan"),
    serveEpoch: manager.coordinates.processEpoch + 1,
  })),
  good("managerAuthorizeAdmin", ({ manager, agent }) => ({
    ...proven(manager, "manager-admin-authorization"),
    caller: agent,
  })),
  bad("managerAuthorizeAdmin", "permission-denied", "with U in place of K", ({ manager, agent }) => ({
    ...proven(manager, "manager-admin-authorization"),
    registrationProof: manager.declaration(),
    caller: agent,
  })),
  good("agentValidateRetained", (scene) => retained(scene, "secret")),
  bad("agentValidateRetained", "permission-denied", "with another secret", (scene) => retained(scene, "guess")),
  bad("agentRuntimeCreate", "unimplemented", "by anybody", ({ manager, agent }) => ({
    ...proven(manager, "manager-managed-agent-runtime-create"),
    target: agent,
  })),
  bad("agentRuntimeStatus", "unimplemented", "by anybody", ({ manager, agent }) => ({
    ...proven(manager, "manager-managed-agent-runtime-status"),
    target: agent,
  })),
  good("agentEnroll", (scene) => enrollment(scene)),
  bad("agentEnroll", "permission-denied", "with more than its parent has", (scene) =>
    enrollment(scene, { allowPublish: ["elsewhere"] }),
  ),
  good("agentPrepareRetirement", async (scene) => prepared(scene, await enrolledAgent(scene))),
  bad("agentPrepareRetirement", "bad-request", "under an id of its own", (scene) =>
    prepared(scene, scene.agent, newUid(systemPorts)),
  ),
  // A person renews the own row, a manager its agents': what both ask for in the same way is refused to both.
  bad("actorRenew", "permission-denied", "of another owner's row", ({ person }) => ({
    kind: "actor-renew",
    requestId: newNonce(systemPorts),
    owner: `u_${"z".repeat(26)}`,
    actor: person.actor,
    lifecycleUid: person.uid,
  })),
];
