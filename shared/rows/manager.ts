/** `manager.<iid>` and `bymanager.<o>.<iid>`: an installation of a manager, and how many an owner has (state §3). */
import Type, { type Static } from "typebox";
import { Owner, Uid } from "../tokens.ts";
import { family } from "./family.ts";
import { closed, GrantedBy } from "./members.ts";

const ManagerRow = closed({
  v: Type.Literal(1),
  instanceId: Uid.schema,
  owner: Owner.schema,
  managerLifecycleUid: Uid.schema,
  grantedBy: GrantedBy,
});
export type Manager = Static<typeof ManagerRow>;

export const managerRows = family({
  stream: "auth",
  pattern: "manager.{instanceId}",
  parts: { instanceId: Uid },
  schema: ManagerRow,
  agrees: (row, key) => row.instanceId === key.instanceId,
  admits: (from, to) =>
    from === undefined || (from.owner === to.owner && from.managerLifecycleUid === to.managerLifecycleUid),
});

const ByManagerRow = closed({});

export const byManagerRows = family({
  stream: "auth",
  pattern: "bymanager.{owner}.{instanceId}",
  parts: { owner: Owner, instanceId: Uid },
  schema: ByManagerRow,
  admits: (from) => from === undefined,
});
