/** What a process may still send that stood within a barrier when it stopped. */
import { epCredRows } from "../../shared/rows/credential.ts";
import type { Entry, Key } from "../../shared/rows/family.ts";
import type { EpGate, Gate } from "../../shared/rows/gate.ts";
import { type Stage, stageRows } from "../../shared/rows/stage.ts";
import { fenced, type Message } from "../../shared/store/message.ts";
import type { Uid } from "../../shared/tokens.ts";
import { freshCredentialId, serveCred } from "../kit/rows.ts";
import type { TestSpace } from "../kit/space.ts";
import type { Instance } from "../services/auth/assignments/instances.ts";
import { gateKeyOf, MANAGER, stored } from "../services/auth/scene.ts";
import type { Victim } from "./victims.ts";

/** What a process that stands within a barrier of an instance may still send. */
export async function gateFenced(
  space: TestSpace,
  of: Instance,
  opId: () => Uid | undefined,
): Promise<Pick<Victim, "late">> {
  const key = gateKeyOf(of);
  const gate = await entry(space, key);
  const credentialId = freshCredentialId();
  const mint = epCredRows.key({ endpoint: MANAGER, instanceId: of.instanceId, credentialId });
  return {
    late: async () => {
      const id = opId();
      return [
        [fenced(mint, serveCred(of.instanceId, { credentialId }), gate)],
        ...(id === undefined ? [] : [[await another(space, id, gate)]]),
      ];
    },
  };
}

/** The stage once more under a fence that has moved. */
export async function another(space: TestSpace, opId: Uid, fence: Entry<unknown>): Promise<Message> {
  const key = stageRows.key({ opId });
  const stage: Stage = await stored(space, key);
  return fenced(key, { ...stage, phase: "drained" }, fence);
}

export async function entry<V extends Gate | EpGate>({ store }: TestSpace, key: Key<V>): Promise<Entry<V>> {
  const found = await store.read(key);
  if (!found) throw new Error(`no row ${key.key}`);
  return found;
}
