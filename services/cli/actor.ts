/** `actor grant|renew|revoke|list`: the ledger of people and agents. */
import type { Command } from "commander";
import type { AuthorityClient } from "../../shared/client.ts";
import { actorGrant } from "../../shared/contracts/auth/actors/actor-grant.ts";
import { actorList } from "../../shared/contracts/auth/actors/actor-list.ts";
import { actorRenew } from "../../shared/contracts/auth/actors/actor-renew.ts";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import type { Input, Output } from "../../shared/contracts/operation.ts";
import { AuthorityError, isAuthorityError } from "../../shared/errors.ts";
import { CLI } from "../../shared/limits.ts";
import { systemPorts } from "../../shared/ports.ts";
import { Actor, ChannelPattern, Owner, PersonOwner, RoleName, Scope, Uid } from "../../shared/tokens.ts";
import { act, type Outcome } from "./action.ts";
import { type Console, table } from "./console.ts";
import { asOperator } from "./operator.ts";
import { a, listOf, oneOf, requestId } from "./values.ts";

type ActorRow = Output<typeof actorList>["actors"][number];
type Grant = Omit<Input<typeof actorGrant>, "requestId">;

export function actorCommands(program: Command, outcome: Outcome): void {
  const actor = program.command("actor").description("people and agents, and what they may do");

  const grant = actor
    .command("grant")
    .description("activate a person's actor; all three lists must be given, since an omission must not mean wide")
    .argument("<owner>", "u_…, as the exchange names it to a person whom it refuses", a(PersonOwner))
    .argument("<actor>", "the person's name for this actor, such as cli", a(Actor))
    .requiredOption("--scope <list>", "of spawn, run, supervise, admin, role:<name>; '' for none", listOf(Scope))
    .requiredOption("--subscribe <list>", "channel patterns that it may read; '' for none", listOf(ChannelPattern))
    .requiredOption("--publish <list>", "channel patterns that it may write; '' for none", listOf(ChannelPattern))
    .option("--role <name>", "role that it bears", a(RoleName))
    .option("--label <text>", "note for people")
    .option("--replace", "revoke an active one with other content first: two calls", false)
    .addHelpText(
      "after",
      "\nExample:\n  mesh-authority actor grant u_abcdefghijklmnopqrstuvwxy2 cli \\\n" +
        "    --scope supervise,run,spawn --subscribe 'general,team.>' --publish general",
    );
  type GrantOptions = { scope: Grant["scope"]; subscribe: Grant["allowSubscribe"]; publish: Grant["allowPublish"] } & {
    role?: NonNullable<Grant["role"]>;
    label?: string;
    replace: boolean;
  };
  act<GrantOptions>(grant, outcome, async ([owner, name], options, say) => {
    const { scope, subscribe: allowSubscribe, publish: allowPublish, role, label, replace } = options;
    const wanted: Grant = {
      owner: PersonOwner.parse(owner),
      actor: Actor.parse(name),
      scope,
      allowSubscribe,
      allowPublish,
      ...(role === undefined ? {} : { role }),
      ...(label === undefined ? {} : { label }),
    };
    const granted = await asOperator(options, (client) =>
      replace ? replacing(client, wanted, say) : granting(client, wanted),
    );
    say.result(granted, `granted ${granted.owner}.${granted.actor}, incarnation ${granted.lifecycleUid}`);
    return undefined;
  });

  const one = (command: Command): Command =>
    command
      .argument("<owner>", "u_…, p_… or local", a(Owner))
      .argument("<actor>", "the actor", a(Actor))
      .option("--uid <uid>", "this incarnation; default: the one that actor list shows", a(Uid));

  const renew = one(
    actor.command("renew").description("make the next root credential, from 60 days of age on"),
  ).addHelpText("after", "\nExample:\n  mesh-authority actor renew u_abcdefghijklmnopqrstuvwxy2 cli");
  act<{ uid?: Uid }>(renew, outcome, async ([owner, name], options, say) => {
    const renewed = await asOperator(options, async (client) =>
      client.call(actorRenew, {
        kind: "actor-renew",
        requestId: requestId(),
        ...(await incarnation(client, owner, name, options.uid)),
      }),
    );
    const until = new Date(renewed.exp).toISOString();
    say.result(renewed, renewed.renewed ? `renewed until ${until}` : `not due yet: good until ${until}`);
    return undefined;
  });

  const revoke = one(
    actor.command("revoke").description("deny everything at once, then retire the incarnation"),
  ).addHelpText("after", "\nExample:\n  mesh-authority actor revoke u_abcdefghijklmnopqrstuvwxy2 cli");
  act<{ uid?: Uid }>(revoke, outcome, async ([owner, name], options, say) => {
    const revoked = await asOperator(options, async (client) =>
      revoking(client, await incarnation(client, owner, name, options.uid), say),
    );
    say.result(revoked, `revoked and retired ${revoked.owner}.${revoked.actor}, incarnation ${revoked.lifecycleUid}`);
    return undefined;
  });

  const list = actor
    .command("list")
    .description("show who may do what")
    .option("--owner <owner>", "only this owner's", a(Owner))
    .option("--kind <kind>", "interactive or managed", oneOf(["interactive", "managed"]))
    .addHelpText(
      "after",
      "\nExamples:\n  mesh-authority actor list\n  mesh-authority actor list --kind managed --json",
    );
  act<{ owner?: Owner; kind?: ActorRow["kind"] }>(list, outcome, async (_, options, say) => {
    const { owner, kind } = options;
    const actors = await asOperator(options, (client) =>
      allActors(client, { ...(owner === undefined ? {} : { owner }), ...(kind === undefined ? {} : { kind }) }),
    );
    say.result(actors, actors.length === 0 ? "nobody yet: `actor grant` makes the first" : listed(actors));
    return undefined;
  });
}

const granting = (client: AuthorityClient, wanted: Grant) =>
  client.call(actorGrant, { requestId: requestId(), ...wanted });

/** A grant only activates, so a change is a revoke and then a grant. */
async function replacing(client: AuthorityClient, wanted: Grant, say: Console) {
  try {
    return await granting(client, wanted);
  } catch (error) {
    const current = isAuthorityError(error, "failed-precondition")
      ? error.details.find((detail) => detail.kind === "ai.cotal.auth.current-lifecycle")
      : undefined;
    if (current?.kind !== "ai.cotal.auth.current-lifecycle") throw error;
    const { owner, actor } = wanted;
    say.note(`1. actor-revoke ${owner}.${actor}, incarnation ${current.lifecycleUid}`);
    await revoking(client, { owner, actor, lifecycleUid: Uid.parse(current.lifecycleUid) }, say);
    say.note(`2. actor-grant ${owner}.${actor}`);
    return granting(client, wanted);
  }
}

/** Repeats until the retirement is confirmed: the row is revoked with the first call, and a repeat joins the same operation. */
async function revoking(
  client: AuthorityClient,
  target: { owner: Owner; actor: Actor; lifecycleUid: Uid },
  say: Console,
): Promise<Output<typeof actorRevoke>> {
  const until = systemPorts.monotonic() + CLI.retireMs;
  for (;;) {
    try {
      return await client.call(actorRevoke, { requestId: requestId(), ...target });
    } catch (error) {
      const begun = isAuthorityError(error, "unavailable") && error.outcome !== "not-executed";
      if (!begun || systemPorts.monotonic() > until) throw error;
      say.note(`access is denied; the retirement is not confirmed yet (${error.message}), asking again`);
      await systemPorts.sleep(CLI.againMs);
    }
  }
}

async function allActors(
  client: AuthorityClient,
  filter: Omit<Input<typeof actorList>, "requestId" | "after">,
): Promise<ActorRow[]> {
  const actors: ActorRow[] = [];
  let after: string | undefined;
  do {
    const page = await client.call(actorList, {
      requestId: requestId(),
      ...filter,
      ...(after === undefined ? {} : { after }),
    });
    actors.push(...page.actors);
    after = page.next;
  } while (after !== undefined);
  return actors;
}

async function incarnation(client: AuthorityClient, owner: unknown, name: unknown, uid: Uid | undefined) {
  const target = { owner: Owner.parse(owner), actor: Actor.parse(name) };
  if (uid !== undefined) return { ...target, lifecycleUid: uid };
  const row = (await allActors(client, { owner: target.owner })).find(({ actor }) => actor === target.actor);
  if (row === undefined) throw new AuthorityError("not-found", "no such actor: `actor list` shows those there are");
  return { ...target, lifecycleUid: row.lifecycleUid };
}

const listed = (actors: readonly ActorRow[]): string =>
  table(
    ["OWNER", "ACTOR", "KIND", "STATE", "SCOPE", "SUBSCRIBE", "PUBLISH", "INCARNATION"],
    actors.map((row) => [
      row.owner,
      row.actor,
      row.kind,
      row.state,
      row.scope.join(","),
      row.allowSubscribe.join(","),
      row.allowPublish.join(","),
      row.lifecycleUid,
    ]),
  );
