import { PersonOwner } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, type Operation, operation } from "../../operation.ts";
import { managerActivate } from "../manager/activate.ts";
import { managerPrepare } from "../manager/prepare.ts";
import { managerRenew } from "../manager/renew.ts";
import { managerRenewStanding } from "../manager/renew-standing.ts";
import { door, exampleDoor, resultOf } from "./door.ts";

/** What a platform supervisor may ask for while its assignment stands. */
export const SUPERVISOR_OPERATIONS: readonly Operation[] = [
  managerPrepare,
  managerActivate,
  managerRenew,
  managerRenewStanding,
];

const kind = "platform-supervisor-authority";

export const supervisorAuthority = operation({
  service: "auth",
  name: "supervisor-authority",
  summary: "Runs a manager's operation for an instance that a platform supervisor is assigned to",
  effect: "write",
  input: Closed({ ...door(kind), owner: PersonOwner.schema }),
  output: resultOf(SUPERVISOR_OPERATIONS),
  callers: ["host"],
  errors: ["permission-denied", "expired", "failed-precondition", "conflict", "contract-invalid"],
  example: { ...exampleDoor(kind), owner: EXAMPLE.owner },
});
