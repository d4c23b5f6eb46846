/** What holds in the authority's stream whatever process died when (state §8): the violations, as sentences. */
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
  const all = async <V>(rows: Parameters<typeof store.scan<V, object>>[0]) => {
    const { entries, corrupt } = await store.scan(rows, {});
    found.push(...corrupt.map((key) => `${key} is unreadable`));
    return new Map(entries.map((entry) => [entry.key.key, entry]));
  };
  const found: string[] = [];
  const [actors, heads, gates, epGates] = [
    await all(actorRows),
    await all(headRows),
    await all(gateRows),
    await all(epGateRows),
  ];
  const [stages, frontiers, sessions] = [await all(stageRows), await all(frontierRows), await all(sessionRows)];
  const [creds, epCreds] = [await all(credRows), await all(epCredRows)];
  const check = (holds: boolean, sentence: string) => {
    if (!holds) found.push(sentence);
  };

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
