/** What holds of every commit, whatever process died when (state §4, §8): the violations, as sentences. */
import { actorRows } from "../../shared/rows/actor.ts";
import { assignmentRows, currentRows } from "../../shared/rows/assignment.ts";
import { credRows, epCredRows } from "../../shared/rows/credential.ts";
import type { Family } from "../../shared/rows/family.ts";
import { frontierRows } from "../../shared/rows/frontier.ts";
import { type EpGate, epGateRows, type Gate, gateRows } from "../../shared/rows/gate.ts";
import { type Head, headRows } from "../../shared/rows/head.ts";
import { byManagerRows, managerRows } from "../../shared/rows/manager.ts";
import { planeRows } from "../../shared/rows/plane.ts";
import { sessionRows } from "../../shared/rows/session.ts";
import { isEnded, type Stage, stageRows } from "../../shared/rows/stage.ts";
import { uidRows } from "../../shared/rows/uid.ts";
import type { Written } from "./history.ts";

/** Every family of the stream, by the first token of its keys. */
const FAMILIES: Readonly<Record<string, Family<unknown>>> = {
  actor: actorRows,
  lifecycle: headRows,
  uid: uidRows,
  gate: gateRows,
  epgate: epGateRows,
  cred: credRows,
  epcred: epCredRows,
  session: sessionRows,
  stage: stageRows,
  plane: planeRows,
  frontier: frontierRows,
  manager: managerRows,
  bymanager: byManagerRows,
  assignment: assignmentRows,
};

const familyOf = (key: string): Family<unknown> | undefined =>
  key === currentRows.key({}).key ? currentRows : FAMILIES[key.split(".", 1)[0] ?? ""];

interface Row {
  readonly key: string;
  readonly value: unknown;
  readonly body: string;
  readonly before: { readonly value: unknown; readonly body: string; readonly seq: number } | undefined;
  readonly expects: { readonly key: string; readonly revision: number };
}

export function wrongTransitions(commits: readonly (readonly Written[])[], prefix: string): string[] {
  const found: string[] = [];
  const last = new Map<string, { value: unknown; body: string; seq: number }>();
  const contained = new Set<string>();
  for (const commit of commits) {
    const rows = commit.flatMap((written): Row[] => {
      const { key, body, headers, seq } = written;
      const at = (sentence: string) => found.push(`${key} at ${seq}: ${sentence}`);
      const family = familyOf(key);
      const value = family?.decode(key, new TextEncoder().encode(body));
      if (!family || value === undefined) {
        at("no row (4)");
        return [];
      }
      const expected = headers?.get("Nats-Expected-Last-Subject-Sequence");
      const on = headers?.get("Nats-Expected-Last-Subject-Sequence-Subject") || prefix + key;
      if (!expected) at("written without an expectation (22)");
      if (Boolean(headers?.get("Nats-TTL")) !== (family.lifetime(value, Date.now()) !== undefined)) at("its TTL (19)");
      const before = last.get(key);
      if (before && before.body !== body && !family.admits(before.value, value)) {
        at(`no such transition (7, 9, 11, 12, 13, 15): ${before.body} to ${body}`);
      }
      return [{ key, value, body, before, expects: { key: on.slice(prefix.length), revision: Number(expected) } }];
    });
    found.push(...wrongTogether(rows, last, contained).map((sentence) => `${sentence} (at ${commit[0]?.seq})`));
    for (const [at, { key, body }] of commit.entries()) {
      last.set(key, { value: rows[at]?.value, body, seq: commit[at]?.seq ?? 0 });
    }
  }
  return found;
}

/** What one commit must have in it beside a row, and under which fence. */
function wrongTogether(
  rows: readonly Row[],
  last: ReadonlyMap<string, { readonly value: unknown; readonly seq: number }>,
  contained: Set<string>,
): string[] {
  const found: string[] = [];
  const under = <V>(kind: string) => rows.filter(({ key }) => key.startsWith(`${kind}.`)) as (Row & { value: V })[];
  const stages = under<Stage>("stage");
  const endOf = (opId: string | undefined) =>
    stages.some(({ value, before }) => value.opId === opId && isEnded(value) && before !== undefined);

  for (const { key, value, before, expects } of stages) {
    if (value.phase === "contained") contained.add(value.opId);
    if (!before) continue;
    // The broker refuses whoever lost the claim, or the gate: each commit of a barrier says so itself (8).
    const fence = value.gate.startsWith("gate.") ? "plane" : value.gate;
    const taken = value.phase === "aborted" && expects.key === key; // its gate goes over to the end of the instance
    if (!taken && (expects.key !== fence || expects.revision !== last.get(fence)?.seq))
      found.push(`${key} is not fenced on ${fence}`);
  }
  for (const { key, value, before } of [...under<Gate | EpGate>("gate"), ...under<Gate | EpGate>("epgate")]) {
    const was = before?.value as Gate | EpGate | undefined;
    if (was?.state === "open" && value.state === "frozen" && !stages.some((stage) => stage.value.gate === key))
      found.push(`${key} is frozen without a stage (6)`);
    if (was?.state !== "frozen" || JSON.stringify(was) === JSON.stringify(value)) continue;
    if (!endOf(was.op?.opId)) found.push(`${key} leaves its freeze without the end of ${was.op?.opId} (7)`);
    if (value.state !== "open") continue;
    // Opened again: by a registration or its repair, in either case only once its holders were verified gone (9).
    if (!contained.has(was.op?.opId ?? "")) found.push(`${key} opens before a verified eviction (9)`);
    if ("processEpoch" in value && "processEpoch" in was && value.processEpoch > was.processEpoch + 1)
      found.push(`${key} skips an epoch (9)`);
  }
  for (const { key, value } of under<Head>("lifecycle")) {
    if (value.state !== "retired") continue;
    const uid = value.lifecycleUid;
    const gate = under<Gate>("gate").find((row) => row.key === `gate.${uid}`);
    const whole =
      gate?.value.state === "retired" &&
      endOf(gate.value.op?.opId) &&
      rows.some((row) => row.key === `frontier.${uid}` && row.before === undefined);
    if (!whole) found.push(`${key} is not retired together with gate, frontier and stage (10)`);
    if (!contained.has(gate?.value.op?.opId ?? "")) found.push(`${key} is retired before a verified eviction (9)`);
  }
  return found;
}
