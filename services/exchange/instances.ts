/** The manager instances of an owner, and which of them are alive (identity §8). */
import type { NatsConnection } from "@nats-io/nats-core";
import { atOnce } from "../../shared/at-once.ts";
import { unavailable } from "../../shared/errors.ts";
import { STORE } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";
import { epGateRows } from "../../shared/rows/gate.ts";
import { byManagerRows } from "../../shared/rows/manager.ts";
import { serviceStatusRows } from "../../shared/rows/service.ts";
import { askApi, describe } from "../../shared/store/api.ts";
import type { Store } from "../../shared/store/store.ts";
import { placeOf, subjectOf } from "../../shared/store/streams.ts";
import { MANAGER, type Owner, type Space, type Uid } from "../../shared/tokens.ts";
import { timeLeft, type Work } from "../../shared/work.ts";

interface SubjectsPage {
  readonly state?: { readonly subjects?: Readonly<Record<string, number>> };
  readonly total?: number;
}

export interface InstanceDeps {
  readonly space: Space;
  readonly store: Pick<Store, "read" | "inspect">;
  /** Of `exchange_store`, for `STREAM.INFO`: reading needs no consumer. */
  readonly authority: NatsConnection;
  readonly ports: Ports;
}

/** Every instance the owner ever had a gate for, from the stream's leader. */
export async function instancesOf(deps: InstanceDeps, owner: Owner, work: Work): Promise<Uid[]> {
  const { space, authority, ports } = deps;
  const { name, prefix } = placeOf("auth", space);
  const subjects_filter = subjectOf("auth", space, byManagerRows.under({ owner }));
  const found: Uid[] = [];
  for (let offset = 0; ; ) {
    const timeout = Math.min(STORE.readTimeoutMs, timeLeft(work, ports));
    const page = await askApi<SubjectsPage>(authority, `STREAM.INFO.${name}`, { subjects_filter, offset }, timeout);
    if (page.error) throw unavailable(`info of ${name}: ${describe(page.error)}`);
    const subjects = Object.keys(page.state?.subjects ?? {});
    for (const subject of subjects) {
      const parts = byManagerRows.parts(subject.slice(prefix.length));
      if (parts?.owner === owner) found.push(parts.instanceId);
    }
    offset += subjects.length;
    if (subjects.length === 0 || offset >= (page.total ?? 0)) return found;
  }
}

/** Whether the instance is this owner's. */
export const belongsTo = async (deps: InstanceDeps, owner: Owner, instanceId: Uid, work: Work): Promise<boolean> =>
  (await deps.store.read(byManagerRows.key({ owner, instanceId }), work)) !== undefined;

/** Its gate is open, and what it registered last is what it says it is. */
export async function isLive({ store }: InstanceDeps, instanceId: Uid, work: Work): Promise<boolean> {
  const key = { endpoint: MANAGER, instanceId };
  const [gate, status] = await Promise.all([
    store.read(epGateRows.key(key), work),
    store.inspect(serviceStatusRows.key(key), work), // others write there: what is garbled is no row (records §1)
  ]);
  return gate?.value.state === "open" && status.state === "row" && status.entry.value.epoch === gate.value.processEpoch;
}

export async function liveOnes(deps: InstanceDeps, instances: readonly Uid[], work: Work): Promise<Uid[]> {
  const live = await atOnce(STORE.readsAtOnce / 2, instances, (instanceId) => isLive(deps, instanceId, work));
  return instances.filter((_, at) => live[at]);
}
