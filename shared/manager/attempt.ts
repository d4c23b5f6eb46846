/** What a manager says of a run's attempt, and the keys of its driver and mediator, which never leave it. */
import { createKeyPair } from "../credentials/nkeys.ts";
import type { Ports } from "../ports.ts";
import { RunId, TakeoverId, UserNkey } from "../tokens.ts";

/** Of a run whose status record shows these numbers; both 0 where there is none. */
export function nextAttempt(runId: RunId, ports: Ports, { epoch, fencingToken } = { epoch: 0, fencingToken: 0 }) {
  const keys = { driver: createKeyPair("user", ports), mediator: createKeyPair("user", ports) };
  const attempt = {
    runId,
    takeoverId: TakeoverId.parse(Buffer.from(ports.random(8)).toString("hex")),
    epoch: epoch + 1,
    fencingToken: fencingToken + 1,
    driverId: UserNkey.parse(keys.driver.public),
    mediatorId: UserNkey.parse(keys.mediator.public),
  };
  return { keys, attempt };
}

/** The run that a request to the manager names; anybody may have sent anything. */
export function runIdOf(request: Uint8Array): RunId | undefined {
  try {
    const { args } = JSON.parse(Buffer.from(request).toString()) as { args?: { runId?: unknown } };
    return RunId.is(args?.runId) ? args.runId : undefined;
  } catch {
    return undefined;
  }
}

export const newRunId = (ports: Ports): RunId => RunId.parse(`run-${Buffer.from(ports.random(16)).toString("hex")}`);
