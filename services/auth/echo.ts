/** What an operation on a manager's behalf says back of its request: `Echo` of operations §2, members as received. */
import type { Actor, Digest, RequestId, Space, Uid } from "../../shared/tokens.ts";
import type { ManagingVisit } from "./visit.ts";

interface Echoed<K extends string> {
  readonly v: 1;
  readonly kind: K;
  readonly space: Space;
  readonly actor: Actor;
  readonly instanceId: Uid;
  readonly managerLifecycleUid: Uid;
  readonly requestId: RequestId;
}

interface Proven<K extends string> extends Echoed<K> {
  readonly registrationProof: Digest;
  readonly serveEpoch: number;
}

export function echo<K extends string>({ args, holder }: Pick<ManagingVisit<Echoed<K>>, "args" | "holder">) {
  const { v, kind, space, actor, instanceId, managerLifecycleUid, requestId } = args;
  return { v, kind, space, owner: holder.owner, actor, instanceId, managerLifecycleUid, requestId };
}

/** `Echo*`: with the proof and the epoch under which it was asked. */
export function provenEcho<K extends string>(visit: Pick<ManagingVisit<Proven<K>>, "args" | "holder">) {
  const { registrationProof, serveEpoch } = visit.args;
  return { ...echo(visit), registrationProof, serveEpoch };
}
