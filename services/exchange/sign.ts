/** The last step of an exchange: from what was checked to a bearer (identity §4, §8). */
import { type BearerAct, signBearer } from "../../shared/bearer.ts";
import type { Ports } from "../../shared/ports.ts";
import type { Actor } from "../../shared/rows/actor.ts";
import type { Owner, Space, Uid } from "../../shared/tokens.ts";
import type { View } from "../../shared/views.ts";
import type { Root } from "./root.ts";
import type { Issuing } from "./trust.ts";

/** The claim that goes with the view. */
export type Target = Pick<BearerAct, "managerInstanceId" | "session" | "transferWriter">;

export interface Grant {
  readonly row: Actor;
  readonly root: Root;
  readonly view?: View | undefined;
  readonly ttlSec?: number | undefined;
  /** Unix seconds at which the proof of login ends; an agent's token has no end. */
  readonly proofExp?: number;
  readonly target: Target;
}

export interface Exchanged {
  readonly token: string;
  readonly owner: Owner;
  /** Unix seconds. */
  readonly exp: number;
  readonly managerInstanceId?: Uid;
}

export async function signGrant(
  { issuer, key }: Issuing,
  space: Space,
  grant: Grant,
  ports: Pick<Ports, "now">,
): Promise<Exchanged> {
  const { row, root, view, ttlSec, proofExp, target } = grant;
  const { owner, actor, scope, parent, lifecycleUid } = row;
  const notAfter = [proofExp, target.session?.exp, Math.floor(root.exp / 1_000)].filter((at) => at !== undefined);
  const act: BearerAct = {
    owner,
    actor,
    scope,
    ...(parent === undefined ? {} : { parent }),
    lifecycleUid,
    credentialId: root.credentialId,
    ...(view === undefined ? {} : { view }),
    ...target,
  };
  const ttl = ttlSec === undefined ? {} : { ttlS: ttlSec };
  const { token, exp } = await signBearer({ issuer, space, act, ...ttl, notAfter }, key, ports);
  const { managerInstanceId } = target;
  return { token, owner, exp, ...(managerInstanceId === undefined ? {} : { managerInstanceId }) };
}
