/** `platform-assign`, `supervisor-assign`, `supervisor-end`, `instance-retire`: what the operator decides of instances. */
import type { Command } from "commander";
import { instanceRetire } from "../../shared/contracts/auth/assignments/instance-retire.ts";
import { platformAssign } from "../../shared/contracts/auth/assignments/platform-assign.ts";
import { supervisorAssign } from "../../shared/contracts/auth/assignments/supervisor-assign.ts";
import { supervisorEnd } from "../../shared/contracts/auth/assignments/supervisor-end.ts";
import type { Output } from "../../shared/contracts/operation.ts";
import { systemPorts } from "../../shared/ports.ts";
import { EndpointLabel, PersonOwner, PlatformOwner, Uid } from "../../shared/tokens.ts";
import { act, type Outcome } from "./action.ts";
import { asOperator } from "./operator.ts";
import { a, requestId, when, wholeNumber } from "./values.ts";

interface Assigning {
  readonly lifecycle: Uid;
  readonly expectedRevision: number;
}

const fromNow = when(systemPorts.now);

export function assignmentCommands(program: Command, outcome: Outcome): void {
  const assigning = (command: Command): Command =>
    command
      .argument("<instance>", "the manager's instance id", a(Uid))
      .requiredOption("--lifecycle <uid>", "the manager's lifecycle uid", a(Uid))
      .option("--expected-revision <n>", "of the stored assignment; 0: there is none yet", wholeNumber, 0);

  const platform = assigning(
    program
      .command("platform-assign")
      .description("give an instance to the platform, or take it back for good")
      .argument("<owner>", "p_…", a(PlatformOwner)),
  )
    .option("--predecessor <instance>", "the instance before it", a(Uid))
    .option("--revoke", "take it back, for good", false)
    .addHelpText(
      "after",
      "\nExample:\n  mesh-authority platform-assign p_abcdefghijklmnopqrstuvwxy2 oqkhe… --lifecycle h5wgj…",
    );
  act<Assigning & { revoke: boolean; predecessor?: Uid }>(
    platform,
    outcome,
    async ([owner, instanceId], options, say) => {
      const { lifecycle: lifecycleUid, revoke, expectedRevision, predecessor } = options;
      const made = await asOperator(options, (client) =>
        client.call(platformAssign, {
          requestId: requestId(),
          owner: PlatformOwner.parse(owner),
          instanceId: Uid.parse(instanceId),
          lifecycleUid,
          state: revoke ? "revoked" : "assigned",
          expectedRevision,
          ...(predecessor === undefined ? {} : { predecessorInstanceId: predecessor }),
        }),
      );
      say.result(made, assigned(made.assignment));
      return undefined;
    },
  );

  const supervisor = assigning(
    program
      .command("supervisor-assign")
      .description("give a person's instance to a platform supervisor for a time, or end that for good")
      .argument("<owner>", "u_…", a(PersonOwner)),
  )
    .requiredOption("--expires <when>", "a date, or a time from now such as 12h or 7d; 30 days at most", fromNow)
    .option("--end", "end it, for good", false)
    .addHelpText(
      "after",
      "\nExample:\n  mesh-authority supervisor-assign u_abcdefghijklmnopqrstuvwxy2 oqkhe… --lifecycle h5wgj… --expires 7d",
    );
  act<Assigning & { end: boolean; expires: number }>(supervisor, outcome, async ([owner, instanceId], options, say) => {
    const { lifecycle: lifecycleUid, end, expectedRevision, expires: expiresAt } = options;
    const made = await asOperator(options, (client) =>
      client.call(supervisorAssign, {
        requestId: requestId(),
        owner: PersonOwner.parse(owner),
        instanceId: Uid.parse(instanceId),
        lifecycleUid,
        state: end ? "ended" : "assigned",
        expectedRevision,
        expiresAt,
      }),
    );
    say.result(made, assigned(made.assignment));
    return undefined;
  });

  const end = program
    .command("supervisor-end")
    .description("end an instance whose supervisor's assignment has ended")
    .argument("<owner>", "u_…", a(PersonOwner))
    .argument("<instance>", "instance id", a(Uid))
    .addHelpText("after", "\nExample:\n  mesh-authority supervisor-end u_abcdefghijklmnopqrstuvwxy2 oqkhe…");
  act(end, outcome, async ([owner, instanceId], options, say) => {
    const args = { requestId: requestId(), owner: PersonOwner.parse(owner), instanceId: Uid.parse(instanceId) };
    const result = await asOperator(options, (client) => client.call(supervisorEnd, args));
    say.result(result, ended(result));
    return undefined;
  });

  const retire = program
    .command("instance-retire")
    .description("end an instance of auth or of a manager that is lost or given up")
    .argument("<endpoint>", "auth or manager", a(EndpointLabel))
    .argument("<instance>", "instance id", a(Uid))
    .addHelpText(
      "after",
      "\nExample, with what `nats micro info auth` shows:\n  mesh-authority instance-retire auth oqkhe…",
    );
  act(retire, outcome, async ([endpoint, instanceId], options, say) => {
    const args = { requestId: requestId(), endpoint: EndpointLabel.parse(endpoint), instanceId: Uid.parse(instanceId) };
    const result = await asOperator(options, (client) => client.call(instanceRetire, args));
    say.result(result, ended(result));
    return undefined;
  });
}

type Assignment = Output<typeof platformAssign>["assignment"] | Output<typeof supervisorAssign>["assignment"];

const assigned = (assignment: Assignment): string =>
  `${assignment.instanceId} is ${assignment.state} (${assignment.kind}, revision ${assignment.assignmentRevision})`;

function ended(result: Output<typeof instanceRetire> | Output<typeof supervisorEnd>): string {
  const { instanceId, revokedRows, evictedPrincipals, evictionVerified } = result;
  const gone = evictionVerified
    ? `${evictedPrincipals.length} principals evicted`
    : "not all connections proven gone: nothing renews them, and they end by themselves";
  return `${instanceId} is retired; ${revokedRows} credentials revoked, ${gone}`;
}
