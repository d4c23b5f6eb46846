/** One request of every kind that a manager makes in its day, and what must come of it. */
import { sha256Hex } from "../../shared/canonical.ts";
import { actorRenew } from "../../shared/contracts/auth/actors/actor-renew.ts";
import { managerAuthorizeAdmin } from "../../shared/contracts/auth/agents/authorize-admin.ts";
import { agentEnroll } from "../../shared/contracts/auth/agents/enroll.ts";
import { managerScanGoals } from "../../shared/contracts/auth/agents/scan-goals.ts";
import { managerPrepare } from "../../shared/contracts/auth/manager/prepare.ts";
import { managerRenew } from "../../shared/contracts/auth/manager/renew.ts";
import { managerRenewRun } from "../../shared/contracts/auth/manager/renew-run.ts";
import { managerRenewStanding } from "../../shared/contracts/auth/manager/renew-standing.ts";
import { managerRetire } from "../../shared/contracts/auth/manager/retire.ts";
import { managerSession } from "../../shared/contracts/auth/manager/session.ts";
import { managerTransferReader } from "../../shared/contracts/auth/manager/transfer-reader.ts";
import { runAttempt } from "../../shared/contracts/auth/runs/run-attempt.ts";
import { runOperator } from "../../shared/contracts/auth/runs/run-operator.ts";
import type { Operation } from "../../shared/contracts/operation.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { retireOpId } from "../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../shared/errors.ts";
import { newNonce, newUid, systemPorts } from "../../shared/ports.ts";
import { Actor, ChannelPattern, Hex64, type RequestId, type RunId, type UserNkey } from "../../shared/tokens.ts";
import { freshTakeoverId, type TestManager } from "../kit/manager.ts";
import type { TestSpace } from "../kit/space.ts";
import { openArgs } from "../services/auth/manager/sessions.ts";
import { admittedRun, heldBy, writeStatus } from "../services/auth/runs/runs.ts";
import { proven } from "../services/auth/scene.ts";

export interface Asked {
  readonly operation: Operation;
  readonly args: object;
  /** The refusal it must meet; absent: it must succeed. */
  readonly refusal?: ErrorCode;
  /** How many credentials the answer has. */
  readonly credentials: number;
}

const freshKey = (): UserNkey => createKeyPair("user").public as UserNkey;

export const renewal = (manager: TestManager) => {
  const { accountPublicKey: _account, processEpoch: _epoch, ...rest } = manager.proven();
  return { ...rest, kind: "manager-service-authority", operation: "renew" };
};
export const standingRenewal = (manager: TestManager) => ({
  ...manager.proven(),
  kind: "manager-service-authority",
  operation: "renewStandingBundle",
});
export const attemptOf = (manager: TestManager, runId: RunId) => ({
  ...manager.proven(),
  kind: "manager-run-attempt",
  attempt: {
    runId,
    takeoverId: freshTakeoverId(),
    epoch: 1,
    fencingToken: 1,
    driverId: freshKey(),
    mediatorId: freshKey(),
  },
});
export const readerOf = (manager: TestManager) => ({
  ...manager.envelope(),
  kind: "manager-service-authority",
  operation: "transferReader",
  registrationProof: manager.declaration(),
  transferReader: { id: freshKey() },
});

function enrollment(manager: TestManager, actor: string) {
  const target = {
    actor: Actor.parse(actor),
    tokenHash: Hex64.parse(sha256Hex(actor)),
    subscribe: [],
    allowSubscribe: [ChannelPattern.parse("team.>")],
  };
  return { ...proven(manager, "manager-managed-agent-enrollment"), target };
}

function retirement(manager: TestManager) {
  const { owner, actor } = manager.person;
  const lifecycleUid = newUid(systemPorts);
  return {
    ...manager.envelope(),
    kind: "manager-service-authority",
    operation: "retire",
    registrationProof: manager.declaration(),
    retirement: {
      id: freshKey(),
      target: { owner, actor, lifecycleUid },
      opId: retireOpId(lifecycleUid),
      serveEpoch: manager.coordinates.processEpoch,
    },
  };
}

/** Twenty requests of a manager: seventeen that must succeed, three that must not. */
export async function dayOf(space: TestSpace, manager: TestManager): Promise<Asked[]> {
  const { person } = manager;
  const [first, second, running] = await Promise.all([1, 2, 3].map(() => admittedRun(space, manager)));
  if (!first || !second || !running) throw new Error("no runs");
  const held = heldBy(manager, running);
  await writeStatus(space, held);
  const { owner, actor, uid: lifecycleUid } = person;
  const self = { owner, actor, lifecycleUid };
  const ok = (operation: Operation, args: object, credentials = 0): Asked => ({ operation, args, credentials });
  const not = (refusal: ErrorCode, operation: Operation, args: object): Asked => ({
    operation,
    args,
    refusal,
    credentials: 0,
  });
  const operatorOf = { id: freshKey(), takeoverId: freshTakeoverId() };
  const run = { ...held, driverId: freshKey(), mediatorId: freshKey() };
  const prepare = { ...manager.envelope(), kind: "manager-service-authority", operation: "prepare" };
  return [
    ok(managerPrepare, prepare, 2),
    ok(managerRenew, renewal(manager), 2),
    ok(managerRenew, renewal(manager), 2),
    ok(managerRenewStanding, standingRenewal(manager), 5),
    ok(managerRenewStanding, standingRenewal(manager), 5),
    ok(managerTransferReader, readerOf(manager), 1),
    ok(managerRetire, retirement(manager), 1),
    ok(managerSession, openArgs(manager, person), 1),
    ok(managerSession, openArgs(manager, person), 1),
    ok(runAttempt, attemptOf(manager, first), 2),
    ok(runAttempt, attemptOf(manager, second), 2),
    ok(
      managerRenewRun,
      { ...manager.proven(), ...{ kind: "manager-service-authority", operation: "renewRunDriver", run } },
      2,
    ),
    ok(runOperator, { ...manager.proven(), kind: "manager-run-attempt", operator: operatorOf }, 1),
    ok(agentEnroll, enrollment(manager, "agent_one")),
    ok(agentEnroll, enrollment(manager, "agent_two")),
    ok(managerScanGoals, proven(manager, "manager-goal-index-scan")),
    ok(managerAuthorizeAdmin, { ...proven(manager, "manager-admin-authorization"), caller: self }),
    not("permission-denied", managerRenew, { ...renewal(manager), registrationProof: manager.declaration() }),
    not("conflict", managerRenewStanding, {
      ...standingRenewal(manager),
      processEpoch: manager.coordinates.processEpoch + 1,
    }),
    not("permission-denied", actorRenew, {
      kind: "actor-renew",
      requestId: newNonce(systemPorts) as string as RequestId,
      ...self,
    }),
  ];
}
