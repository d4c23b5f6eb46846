/** The mesh's streams in which messages of an incarnation wait, and the durables on them. */
import { jetstreamManager } from "@nats-io/jetstream";
import type { TestSpace } from "../../kit/space.ts";

const STREAMS = ["DM", "DLV", "TASK"] as const;
const WORDS = { DM: "inst", DLV: "dlv", TASK: "svc" } as const;

/** Makes them; `maxConsumers` bounds those of DM. */
export async function makeMailboxes({ space, roots }: TestSpace, maxConsumers?: number): Promise<void> {
  const { streams } = await jetstreamManager(roots.space);
  for (const stream of STREAMS) {
    const bound = stream === "DM" && maxConsumers !== undefined ? { max_consumers: maxConsumers } : {};
    await streams.add({ name: `${stream}_${space}`, subjects: [`cotal.${space}.${WORDS[stream]}.>`], ...bound });
  }
}

export async function removeMailboxes({ space, roots }: TestSpace): Promise<void> {
  const { streams } = await jetstreamManager(roots.space);
  for (const stream of STREAMS) await streams.delete(`${stream}_${space}`);
}

/** Their names, sorted; with `actor` that one's alone. */
export async function durables({ space, roots }: TestSpace, actor?: string): Promise<string[]> {
  const { consumers } = await jetstreamManager(roots.space);
  const names: string[] = [];
  for (const stream of STREAMS) {
    for await (const { name } of consumers.list(`${stream}_${space}`)) names.push(name);
  }
  return names.filter((name) => actor === undefined || name.includes(`-${actor}-`)).sort();
}
