/**
 * What holds in the authority's stream whatever process died when: the violations, as sentences, with their number in
 * state §8. Rows as they are show 1 (of `auth` itself), 4, 10, 11, 12, 15 and 17; the commits that led there
 * (`transitions.ts`) 4, 6 to 13, 15, 19 and 22. The others are of a moment and no state: 2, 3 and 23 in `test/races`,
 * 5, 14, 16, 18, 20, 21 and 24 with the store, custodian, guard, `take`, compiler, issued authority and runs.
 */
import { AUTH } from "../../services/auth/context.ts";
import { ROLES } from "../../shared/credentials/roles.ts";
import { actorRows } from "../../shared/rows/actor.ts";
import { credRows, epCredRows } from "../../shared/rows/credential.ts";
import type { Entry } from "../../shared/rows/family.ts";
import { frontierRows } from "../../shared/rows/frontier.ts";
import { epGateRows, gateRows } from "../../shared/rows/gate.ts";
import { headRows } from "../../shared/rows/head.ts";
import { sessionRows } from "../../shared/rows/session.ts";
import { isEnded, stageRows } from "../../shared/rows/stage.ts";
import type { Store } from "../../shared/store/store.ts";

export async function violations(store: Store): Promise<string[]> {
  const found: string[] = [];
  const check = (holds: boolean, sentence: string) => {
    if (!holds) found.push(sentence);
  };
  const all = async <V>(rows: Parameters<typeof store.scan<V, object>>[0]) => {
    const [{ entries, corrupt }, other, keys] = await Promise.all([
      store.scan(rows, {}),
      store.scan(rows, {}),
      store.keys(rows, {}),
    ]);
    found.push(...corrupt.map((key) => `${key} is unreadable (4)`));
    const names = (of: readonly { readonly key: { readonly key: string } }[]) => of.map(({ key }) => key.key).sort();
    const [one, two] = [names(entries), names(other.entries)];
    const full = [one, two].every(
      (scanned) =>
        scanned.join() ===
        keys
          .map(({ key }) => key)
          .sort()
          .join(),
    );
    check(full, `scans gave ${one.length} and ${two.length} rows of ${keys.length} (17)`);
    return new Map(entries.map((entry) => [entry.key.key, entry]));
  };
  const [actors, heads, gates, epGates] = [
    await all(actorRows),
    await all(headRows),
    await all(gateRows),
    await all(epGateRows),
  ];
  const [stages, frontiers, sessions] = [await all(stageRows), await all(frontierRows), await all(sessionRows)];
  const [creds, epCreds] = [await all(credRows), await all(epCredRows)];

  for (const { key, value, revision } of heads.values()) {
    const uid = value.lifecycleUid;
    const gate = gates.get(`gate.${uid}`);
    const actor = actors.get(key.key.replace("lifecycle.", "actor."));
    const expected = { active: "open", retiring: "frozen", retired: "retired" }[value.state];
    check(gate?.value.state === expected, `${key.key} is ${value.state}, its gate ${gate?.value.state}`);
    if (value.state !== "active") {
      check(actor?.value.state === "revoked" || actor?.value.lifecycleUid !== uid, `${key.key}: its actor is active`);
    }
    if (value.state === "retired") {
      const frontier = frontiers.get(`frontier.${uid}`);
      const stage = stages.get(`stage.${gate?.value.op?.opId}`);
      const instant = [stage, frontier, gate].map((row: Entry<unknown> | undefined) => row?.revision);
      const asOne = instant.every((at, index) => at === revision - 3 + index);
      check(asOne, `${key.key} was not retired in one commit: ${[...instant, revision]}`);
      check(active(creds, `cred.${uid}.`) === 0, `${key.key} is retired and has active credentials`);
    }
    if (value.state === "active") {
      const roots = [...creds.values()].filter(
        ({ value: row }) => row.lifecycleUid === uid && row.role === "root" && row.state === "active",
      );
      const [root, ...more] = roots;
      check(
        root?.value.credentialId === value.currentCredentialId && more.length === 0,
        `${key.key}: not its one root`,
      );
    }
  }
  for (const { key, value } of [...gates.values(), ...epGates.values()]) {
    const stage = stages.get(`stage.${value.op?.opId}`)?.value;
    if (value.state === "frozen")
      check(stage?.gate === key.key && !isEnded(stage), `${key.key}: frozen without a stage`);
    if (value.state === "retired") check(stage === undefined || isEnded(stage), `${key.key}: retired, its stage lives`);
  }
  for (const { key, value } of stages.values()) {
    const gate = (gates.get(value.gate) ?? epGates.get(value.gate))?.value;
    if (!isEnded(value))
      check(gate?.state === "frozen" && gate.op?.opId === value.opId, `${key.key} lives beside its gate`);
  }
  for (const { key, value } of epGates.values()) {
    const prefix = key.key.replace("epgate.", "epcred.");
    if (value.state === "retired")
      check(active(epCreds, `${prefix}.`) === 0, `${key.key}: ended with active credentials`);
  }
  const ids = [...creds.values(), ...epCreds.values()].map(({ value }) => value.credentialId);
  check(new Set(ids).size === ids.length, "two mints share a credential id (12)");
  for (const { key, value } of epCreds.values()) {
    const { endpoint, processEpoch, role, state } = value;
    const gate = epGates.get(`epgate.${key.key.split(".").slice(1, 3).join(".")}`)?.value;
    if (state !== "active" || gate?.state !== "open" || !(endpoint === AUTH || ROLES[role].serveFamily)) continue;
    check(
      processEpoch === gate.processEpoch,
      `${key.key} serves under epoch ${processEpoch}, not ${gate.processEpoch}`,
    );
  }
  for (const { key, value } of sessions.values()) {
    const { endpoint, serving, servingCredentialId, holder, holderCredentialId } = value;
    const halves = [
      epCreds.get(`epcred.${endpoint}.${serving.instanceId}.${servingCredentialId}`),
      creds.get(`cred.${holder.lifecycleUid}.${holderCredentialId}`),
    ].map((row) => row?.value.state);
    const whole = value.state === "active" ? !halves.includes("revoked") : !halves.includes("active");
    check(whole, `${key.key} is ${value.state}, its halves ${halves}`);
  }
  return found;
}

const active = (rows: ReadonlyMap<string, Entry<{ readonly state: string }>>, prefix: string): number =>
  [...rows].filter(([key, { value }]) => key.startsWith(prefix) && value.state === "active").length;
