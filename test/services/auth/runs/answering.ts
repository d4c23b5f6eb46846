/** A manager whose runs ask questions, a person who answers them, and the requests for the credential to do so. */
import { runOperator } from "../../../../shared/contracts/auth/runs/run-operator.ts";
import type { Input, Output } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import type { AuthorityError, ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { type RunId, UserNkey } from "../../../../shared/tokens.ts";
import { freshTakeoverId, type TestManager } from "../../../kit/manager.ts";
import type { ManagerCaller, Person } from "../../../kit/person.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import {
  admittedRun,
  appendRecord,
  createJournals,
  heldBy,
  type StepEntry,
  stepEntry,
  writeCheckpoint,
  writeJournal,
  writeStatus,
} from "./runs.ts";

export type OperatorArgs = Input<typeof runOperator>;
export type Answers = Extract<OperatorArgs["operator"], { answers: unknown }>["answers"];

/** The step that `askingRun` asks. */
export const STEP = "main/checkpoint:deploy#1";

export interface AskingRun {
  readonly runId: RunId;
  readonly token: string;
  readonly answers: Answers;
  /** Appends another record of the step. */
  append(n: number, change: Partial<StepEntry>): Promise<void>;
}

export interface Answering {
  readonly space: TestSpace;
  readonly alice: Person;
  readonly manager: TestManager;
  /** Alice's own connection to that manager. */
  readonly caller: ManagerCaller;
  args(operator?: object, key?: ReturnType<typeof createKeyPair>): OperatorArgs;
  ask(operator?: object): Promise<Output<typeof runOperator>>;
  refused(code: ErrorCode, operator: object): Promise<AuthorityError>;
  /** A run with one step, whose checkpoint waits for an answer. */
  askingRun(): Promise<AskingRun>;
  /** Publishes the request that an answer serves; gives its subject. */
  served(answers: Answers, change?: object, by?: Pick<ManagerCaller, "request">): Promise<string>;
}

export function operatorArgs(of: TestManager, operator: object = {}, key = createKeyPair("user")): OperatorArgs {
  const who = { id: UserNkey.parse(key.public), takeoverId: freshTakeoverId() };
  return { ...of.proven(), kind: "manager-run-attempt", operator: { ...who, ...operator } };
}

export async function startAnswering(): Promise<Answering> {
  const space = await startSpace({ services: ["custodian", "auth", "exchange", "callout"] });
  const alice = await space.person("alice", { scope: ["supervise", "run"] });
  const manager = await space.manager(alice);
  const caller = await alice.callerOf(manager);
  await createJournals(space);
  const ask = (request: OperatorArgs) => manager.client.call(runOperator, request, { once: true });
  const args = (operator?: object, key?: ReturnType<typeof createKeyPair>) => operatorArgs(manager, operator, key);
  return {
    space,
    alice,
    manager,
    caller,
    args,
    ask: (operator) => ask(args(operator)),
    refused: (code, operator) => unchanged(space, code, () => ask(args(operator))),
    async askingRun() {
      const runId = await admittedRun(space, manager);
      const token = `t-${newUid(systemPorts)}`;
      await writeStatus(space, heldBy(manager, runId), { journalHigh: 2 });
      await writeJournal(space, runId, [stepEntry({ requestId: token })]);
      await writeCheckpoint(space, token, "waiting");
      const append = (n: number, change: Partial<StepEntry>) =>
        appendRecord(space, runId, {
          v: 1,
          kind: "step",
          run: runId,
          n,
          at: 0,
          entry: stepEntry({ requestId: token, ...change }),
        });
      return { runId, token, answers: { runId, stepKey: STEP }, append };
    },
    served: (answers, change = {}, by = caller) => by.request("run-answer", { ...answers, ...change }),
  };
}
