/** What was promised, looked for in the ledger; what is missing or too much, as sentences. */
import { actorRows } from "../../shared/rows/actor.ts";
import { inboxRows } from "../../shared/rows/connect.ts";
import { credRows, epCredRows } from "../../shared/rows/credential.ts";
import type { Owner } from "../../shared/tokens.ts";
import type { TestManager } from "../kit/manager.ts";
import type { TestSpace } from "../kit/space.ts";
import { MANAGER } from "../services/auth/scene.ts";
import type { Grant, Promised } from "./day.ts";

/** The ids of every credential of a manager's family, active or not. */
export async function credentialIds({ store }: TestSpace, { instanceId }: TestManager): Promise<Set<string>> {
  const { entries } = await store.scan(epCredRows, { endpoint: MANAGER, instanceId });
  return new Set(entries.map(({ value }) => value.credentialId));
}

export async function broken({ store }: TestSpace, manager: TestManager, promised: Promised): Promise<string[]> {
  const found: string[] = [];
  const actors = await store.scan(actorRows, {});
  const byOwner = new Map(actors.entries.map((row) => [row.value.owner, row]));
  for (const { owner, lifecycleUid } of promised.grants) {
    const row = byOwner.get(owner)?.value;
    if (row?.lifecycleUid !== lifecycleUid || row.state !== "active") found.push(`${owner} is not granted`);
  }
  found.push(...outOfOrder(promised.grants, (owner) => byOwner.get(owner)?.revision ?? 0));
  const { entries } = await store.scan(epCredRows, { endpoint: MANAGER, instanceId: manager.instanceId });
  const rows = new Map(entries.map(({ value }) => [value.credentialId as string, value]));
  for (const id of promised.credentialIds) if (!rows.has(id)) found.push(`credential ${id} has no row`);
  if (new Set(promised.credentialIds).size !== promised.credentialIds.length) found.push("one credential twice");
  const roots = await store.scan(credRows, {});
  const active = new Set(
    roots.entries.flatMap(({ value }) =>
      value.state === "active" ? `${value.lifecycleUid}.${value.credentialId}` : [],
    ),
  );
  for (const { uid, credentialId } of promised.bearers) {
    if (!active.has(`${uid}.${credentialId}`)) found.push(`a bearer of ${uid} has no credential`);
  }
  const inboxes = await store.scan(inboxRows, {});
  const nonces = new Set(inboxes.entries.map(({ key }) => key.key));
  for (const nonce of promised.nonces) {
    if (!nonces.has(inboxRows.key({ nonce }).key)) found.push(`connection ${nonce} has no row`);
  }
  return [...found, ...[...actors.corrupt, ...roots.corrupt, ...inboxes.corrupt].map((key) => `${key} is unreadable`)];
}

/** Whatever was begun after another was acknowledged has the higher revision, whoever led. */
function outOfOrder(grants: readonly Grant[], revisionOf: (owner: Owner) => number): string[] {
  const begun = grants.toSorted((one, other) => one.begunAt - other.begunAt);
  const acknowledged = grants.toSorted((one, other) => one.acknowledgedAt - other.acknowledgedAt);
  const found: string[] = [];
  let next = 0;
  let highest = 0;
  for (const { owner, begunAt } of begun) {
    for (; (acknowledged[next]?.acknowledgedAt ?? Infinity) < begunAt; next += 1) {
      highest = Math.max(highest, revisionOf(acknowledged[next]?.owner ?? owner));
    }
    if (revisionOf(owner) <= highest) found.push(`${owner} has revision ${revisionOf(owner)}, not above ${highest}`);
  }
  return found;
}
