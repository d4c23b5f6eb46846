/** Step 6: how far each stream had come when nothing was left to be written for a lifecycle (lifecycles §1.2). */
import type { Frontier } from "../../../shared/rows/frontier.ts";
import { type AnyStream, placeOf } from "../../../shared/store/streams.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";

const STREAMS: readonly AnyStream[] = ["facts", "pool", "events", "records"];

/** By the streams' own names; one that does not exist is left out. */
export async function readFrontier({ store, space }: AuthContext, work: Work): Promise<Frontier["streams"]> {
  const read = await Promise.all(STREAMS.map((stream) => store.lastSeq(stream, work)));
  return Object.fromEntries(
    STREAMS.flatMap((stream, index) => {
      const sequence = read[index];
      return sequence === undefined ? [] : [[placeOf(stream, space).name, sequence]];
    }),
  );
}
