/** Every row of the matrix, compiled from one set of bindings or more; of any size where a row can grow. */
import { compilePermissions } from "../../shared/credentials/compile.ts";
import type { Permissions } from "../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import type { Holder } from "../../shared/credentials/profiles/profile.ts";
import type { Bindings, ProfileName } from "../../shared/credentials/profiles.ts";
import { runHolder } from "../../shared/credentials/roles.ts";
import type { AccountName } from "../../shared/credentials/users.ts";
import {
  Actor,
  ChannelPattern,
  Command,
  EndpointLabel,
  EnvelopeId,
  Generation,
  Hex64,
  Owner,
  RoleName,
  RunId,
  SessionId,
  Space,
  TakeoverId,
  Uid,
  UserNkey,
} from "../../shared/tokens.ts";

export const space = Space.parse("demo");
export const person = Owner.parse(`u_${"a".repeat(26)}`);
export const platform = Owner.parse(`p_${"b".repeat(26)}`);
export const local = Owner.parse("local");
export const uid = Uid.parse(`0f3k${"u".repeat(28)}`);
export const instanceId = Uid.parse(`1a7d${"i".repeat(28)}`);
export const runId = RunId.parse(`run-${"0".repeat(32)}`);
export const takeoverId = TakeoverId.parse("00112233aabbccdd");
export const sessionId = SessionId.parse("s".repeat(64));
export const manager = EndpointLabel.parse("manager");
export const epoch = 7;

export function holder(owner: Owner, actor: string, of: Uid = uid, key = createKeyPair("user").public): Holder {
  return { space, owner, actor: Actor.parse(actor), uid: of, inbox: UserNkey.parse(key) };
}

const channels = (count: number) =>
  Array.from({ length: count }, (_, at) => ChannelPattern.parse(`team-${at}.${at % 2 ? "*" : "general"}.>`));

/** The manager's commands as its contract declares them. */
export const surface = [
  ...["status", "list", "run-start", "run-resume"].map((name) => ({ name: Command.parse(name), modes: [] })),
  { name: Command.parse("run-answer"), modes: ["self" as const] },
  { name: Command.parse("whoami"), modes: ["self" as const] },
  ...["spawn", "despawn", "turn", "resolve-cwd"].map((name) => ({
    name: Command.parse(name),
    modes: ["owner" as const],
  })),
];

const aManager = (identity: string, owner = person) => holder(owner, `${identity}_${instanceId}`);
const aRun = holder(person, runHolder(runId).actor, runHolder(runId).uid);
const serve = { endpoint: manager, instanceId, epoch, commands: surface, pools: [Command.parse("gpu")] };

/** One compiled row of the matrix. */
export interface Case {
  readonly profile: ProfileName;
  readonly account: AccountName;
  readonly holder: Holder;
  readonly permissions: Permissions;
}
const row = <N extends ProfileName>(profile: N, account: AccountName, bindings: Bindings<N> & Holder): Case => ({
  profile,
  account,
  holder: bindings,
  permissions: compilePermissions(profile, bindings),
});

/** Lists of `size` channels where a row has lists. */
export const cases = (size: number): Case[] => {
  const lists = { allowSubscribe: channels(size), allowPublish: channels(size) };
  const cli = holder(person, "cli");
  const generation = Generation.parse("0".repeat(32));
  const run = { runId, takeoverId };
  return [
    row("agent", "space", { ...cli, ...lists, spawn: true, role: RoleName.parse("reviewer") }),
    row("agent", "space", { ...cli, ...lists, spawn: false }),
    row("admin", "space", cli),
    row("manager-caller", "space", { ...cli, instanceId }),
    row("manager-caller", "space", { ...cli, instanceId, issued: { generation, token: "1".repeat(32) } }),
    row("session-caller", "space", { ...cli, endpoint: manager, sessionId, epoch }),
    row("transfer-writer", "space", { ...cli, instanceId, hex: Hex64.parse("c".repeat(64)) }),
    row("channel-writer", "space", cli),
    row("channel-purger", "space", cli),
    row("purger", "space", cli),
    row("deployer", "space", cli),
    row("supervisor", "space", aManager("manager")),
    row("executor", "space", { ...aManager("manager_exec"), instanceId }),
    ...[person, platform, local].map((owner) =>
      row("endpoint-serve", "space", { ...aManager("manager_serve", owner), ...serve }),
    ),
    ...[person, platform, local].map((owner) => row("goal-writer", "space", aManager("manager_goal", owner))),
    row("session-ledger", "space", aManager("manager_session")),
    row("session-serving", "space", { ...aManager("manager_serve"), sessionId, epoch }),
    row("transfer-reader", "space", { ...aManager("manager"), instanceId }),
    row("retirement-requester", "space", {
      ...aManager("manager_serve"),
      target: { owner: person, actor: Actor.parse("coder"), uid },
    }),
    row("run-driver", "space", { ...aRun, ...run }),
    row("run-mediator", "space", {
      ...aRun,
      ...run,
      instanceId,
      epoch,
      granter: { owner: person, actor: Actor.parse("cli"), uid, ...lists },
    }),
    row("run-mediator", "space", { ...aRun, ...run, instanceId, epoch }),
    row("run-operator", "space", { ...cli, takeoverId }),
    row("run-operator", "space", { ...cli, takeoverId, runId, token: EnvelopeId.parse("t".repeat(43)) }),
    row("gateway", "space", holder(local, "gateway_public")),
    row("operator", "space", holder(local, "operator")),
    row("operator-callout", "callout", holder(local, "operator_callout")),
    row("platform-host", "space", holder(local, "platform_host")),
    row("service-serve", "space", { ...holder(local, `auth_serve_${instanceId}`), instanceId, epoch }),
    row("service", "space", { ...holder(local, "exchange"), service: "exchange" }),
    row("service", "space", { ...holder(local, "custodian"), service: "custodian" }),
    row("exchange-store", "authority", holder(local, "exchange_store")),
    row("custodian-system", "system", holder(local, "custodian_system")),
    row("callout", "callout", holder(local, "callout")),
    row("work", "space", { ...holder(local, "auth"), service: "auth" }),
    row("work", "space", { ...holder(local, "callout"), service: "callout" }),
    row("store", "authority", { ...holder(local, "auth"), service: "auth" }),
    row("store", "authority", { ...holder(local, "callout"), service: "callout" }),
    row("scan", "authority", { ...holder(local, "auth"), account: "authority" }),
    row("scan", "space", { ...holder(local, "auth"), account: "space" }),
  ];
};
