/** What was promised, looked for in the ledger; what is missing or too much, as sentences. */
import { actorRows } from "../../shared/rows/actor.ts";
import { inboxRows } from "../../shared/rows/connect.ts";
import { credRows, epCredRows } from "../../shared/rows/credential.ts";
import { Actor } from "../../shared/tokens.ts";
import type { TestManager } from "../kit/manager.ts";
import type { TestSpace } from "../kit/space.ts";
import { MANAGER } from "../services/auth/scene.ts";
import type { Promised } from "./day.ts";

/** The ids of every credential of a manager's family, active or not. */
export async function credentialIds({ store }: TestSpace, { instanceId }: TestManager): Promise<Set<string>> {
  const { entries } = await store.scan(epCredRows, { endpoint: MANAGER, instanceId });
  return new Set(entries.map(({ value }) => value.credentialId));
}

export async function broken({ store }: TestSpace, manager: TestManager, promised: Promised): Promise<string[]> {
  const found: string[] = [];
  const actors = await store.scan(actorRows, {});
  const uids = new Map(actors.entries.map(({ value }) => [`${value.owner}.${value.actor}`, value]));
  for (const { owner, lifecycleUid } of promised.grants) {
    const row = uids.get(`${owner}.${Actor.parse("cli")}`);
    if (row?.lifecycleUid !== lifecycleUid || row.state !== "active") found.push(`${owner} is not granted`);
  }
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
