/** That a refusal refused: its code, and nothing written to any stream of ours. */
import { expect } from "vitest";
import { AuthorityError, type ErrorCode, type Outcome } from "../../shared/errors.ts";
import type { StreamName } from "../../shared/store/streams.ts";
import type { Ground } from "./ground.ts";
import { OUR_STREAMS } from "./store.ts";

/** Observations are what a test publishes itself. */
const WRITTEN: readonly StreamName[] = OUR_STREAMS.filter((stream) => stream !== "observations");

/** The last sequence of each stream. */
export async function sequences({ store }: Pick<Ground, "store">): Promise<Record<string, number | undefined>> {
  const all = await Promise.all(WRITTEN.map(async (stream) => [stream, await store.lastSeq(stream)] as const));
  return Object.fromEntries(all);
}

/** Runs `work`, which must be refused with `code` (and the outcome `not-executed`) and leave every stream as it was. */
export async function unchanged(
  ground: Pick<Ground, "store">,
  code: ErrorCode,
  work: () => Promise<unknown>,
  outcome: Outcome = "not-executed",
): Promise<AuthorityError> {
  const before = await sequences(ground);
  const error = await work().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AuthorityError)) throw new Error(`not refused with ${code}`, { cause: error });
  expect({ code: error.code, outcome: error.outcome }, error.message).toEqual({ code, outcome });
  expect(await sequences(ground)).toEqual(before);
  return error;
}
