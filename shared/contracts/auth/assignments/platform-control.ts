import { Closed, type Operation, operation } from "../../operation.ts";
import { managerAuthorizeAdmin } from "../agents/authorize-admin.ts";
import { managerScanGoals } from "../agents/scan-goals.ts";
import { agentValidateRetained } from "../agents/validate-retained.ts";
import { managerMaintainEvict } from "../maintain/evict.ts";
import { managerMaintainReconcile } from "../maintain/reconcile.ts";
import { managerActivate } from "../manager/activate.ts";
import { managerPrepare } from "../manager/prepare.ts";
import { managerRenew } from "../manager/renew.ts";
import { managerRenewRun } from "../manager/renew-run.ts";
import { managerRenewStanding } from "../manager/renew-standing.ts";
import { managerRetire } from "../manager/retire.ts";
import { managerSession } from "../manager/session.ts";
import { managerTransferReader } from "../manager/transfer-reader.ts";
import { runAdmit } from "../runs/run-admit.ts";
import { runAttempt } from "../runs/run-attempt.ts";
import { runOperator } from "../runs/run-operator.ts";
import { door, exampleDoor, resultOf } from "./door.ts";

/** What the platform's assigned instance may ask for through its host. */
export const PLATFORM_OPERATIONS: readonly Operation[] = [
  managerPrepare,
  managerActivate,
  managerRenew,
  managerRenewStanding,
  managerRenewRun,
  managerSession,
  managerTransferReader,
  managerRetire,
  managerMaintainEvict,
  managerMaintainReconcile,
  agentValidateRetained,
  managerScanGoals,
  managerAuthorizeAdmin,
  runAdmit,
  runAttempt,
  runOperator,
];

const kind = "platform-control-authority";

export const platformControl = operation({
  service: "auth",
  name: "platform-control",
  summary: "Runs a manager's operation for the platform's assigned instance",
  effect: "write",
  input: Closed(door(kind)),
  output: resultOf(PLATFORM_OPERATIONS),
  callers: ["host"],
  errors: [
    "permission-denied",
    "not-found",
    "expired",
    "failed-precondition",
    "conflict",
    "contract-invalid",
    "unimplemented",
  ],
  example: exampleDoor(kind),
});
