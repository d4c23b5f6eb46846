/** Issues a short credential to look at runs, or to answer one step of one run (operations §5). */
import type { runOperator } from "../../../shared/contracts/auth/runs/run-operator.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import type { EpGate } from "../../../shared/rows/gate.ts";
import type { Actor, EnvelopeId } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import { issue } from "../issue/issue.ts";
import { type Credential, credential } from "../issue/mint.ts";
import { checkServed, type Served, servedRequest } from "../issue/served.ts";
import { named } from "../manager/material.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, type ManagingVisit, managing } from "../visit.ts";
import { admitted, notRevoked } from "./admitted.ts";
import { attemptEcho } from "./echo.ts";
import { answerToken } from "./journal.ts";

type Visit = ManagingVisit<Input<typeof runOperator>>;
type Operator = Visit["args"]["operator"];
type Answering = Extract<Operator, { answers: unknown }>;

export const handleRunOperator: AuthHandler<typeof runOperator> = async (given) => {
  const visit = managing(given);
  const { args } = visit;
  const { operator } = args;
  const answering = "answers" in operator ? operator : undefined;
  const runId = "answers" in operator ? operator.answers.runId : operator.runId;
  const served = answering?.served === undefined ? undefined : servedRequest(answering.served);
  visit.note({ form: formOf(operator), ...(answering ? { stepKey: answering.answers.stepKey } : {}) });
  const issued = await issue(visit, {
    async plan(current) {
      const gate = await checkRegistration(current);
      if (runId !== undefined) await admitted(current, runId, args.instanceId);
      const token = answering && (await tokenFor(current, gate, answering, served));
      return { gate, credentials: [operatorCredential(current, token)] };
    },
    async after(current) {
      if (runId !== undefined) await notRevoked(current, runId);
    },
  });
  return { ...attemptEcho(visit), operator, credentials: { operator: named(issued, "operator") } };
};

function formOf(operator: Operator): "list" | "read" | "answer" | "amend" {
  if ("answers" in operator) return operator.answers.amend ? "amend" : "answer";
  return operator.runId === undefined ? "list" : "read";
}

/** Checks 3 to 5, in this order, so that a wrong step spends no observation. */
async function tokenFor(
  visit: Visit,
  gate: Entry<EpGate>,
  { answers }: Answering,
  served: Served | undefined,
): Promise<EnvelopeId> {
  const token = await answerToken(visit, answers);
  if (!served) throw new AuthorityError("permission-denied", "name the request that this answer serves");
  await checkServed(visit, gate, served, {
    command: "run-answer",
    owner: visit.holder.owner,
    agrees: ({ endpoint, runId, stepKey, amend }) =>
      endpoint === MANAGER &&
      runId === answers.runId &&
      stepKey === answers.stepKey &&
      amend === (answers.amend === true),
  });
  return token;
}

/** A person's own hand on a run: the principal has other connections, so nobody is evicted for this row. */
function operatorCredential({ args, holder }: Visit, token: EnvelopeId | undefined): Credential {
  const { operator, managerLifecycleUid } = args;
  const { granter } = holder;
  const uid = granter.kind === "actor" ? granter.row.value.lifecycleUid : managerLifecycleUid;
  return credential({
    name: "operator",
    role: "runOperator",
    profile: "run-operator",
    key: operator.id,
    holder: { owner: holder.owner, actor: args.actor as Actor, uid },
    bindings: {
      takeoverId: operator.takeoverId,
      ...("answers" in operator || operator.runId === undefined ? {} : { runId: operator.runId }),
      ...(token === undefined ? {} : { token }),
    },
  });
}
