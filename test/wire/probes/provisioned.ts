/** Probes of the users that `init` provisions. */
import { permissionsOf } from "../../../shared/credentials/user-permissions.ts";
import { provisionedUser, USERS, type UserName } from "../../../shared/credentials/users.ts";
import { local, space } from "../../kit/bindings.ts";
import { identity, type Probe } from "../../kit/probe.ts";
import { ask, never, P, serving, T } from "./serving.ts";

type Declared = Pick<Probe, "name" | "publish" | "subscribe" | "notPublish" | "notSubscribe">;

/** A user as `init` makes it. */
function user(name: UserName, declared: Declared): Probe {
  const { key, holder } = identity(local, name);
  const made = provisionedUser(space, name, key.public);
  return {
    ...declared,
    account: USERS[name].account,
    of: { key, holder: { ...holder, uid: made.uid } },
    permissions: permissionsOf(made),
  };
}

const MAP = [
  ...["run-admit", "run-revoke", "run-attempt", "run-operator", "manager-prepare", "manager-activate", "manager-renew"],
  ...["manager-renew-standing", "manager-renew-run", "manager-session", "manager-transfer-reader", "manager-retire"],
  ...["manager-maintain-evict", "manager-maintain-reconcile", "manager-scan-goals", "manager-authorize-admin"],
  ...["agent-validate-retained", "agent-enroll", "agent-prepare-retirement", "agent-runtime-create", "actor-renew"],
];

const face = (name: UserName): Probe =>
  user(name, {
    name: `${name}: the operations of the gateway's routes`,
    publish: [
      ...MAP.map((command) => ask("auth", command)),
      ...["exchange-user", "exchange-agent", "jwks", "discovery"].map((command) => ask("exchange", command)),
    ],
    subscribe: [],
    notPublish: [
      never("exchange", "identify"),
      never("custodian", "evict-principals"),
      ...["actor-grant", "actor-revoke", "actor-list", "agent-retire", "platform-control", "manager-register"].map(
        (c) => never("auth", c),
      ),
      never("auth", "describe"),
      `${P}.ep.one.auth.retire-lifecycle.exact.{o}.x.{u}.${T}.n`,
      "$JS.API.INFO",
    ],
    notSubscribe: [`${P}.ep.one.auth.run-admit.> auth`, "$SRV.PING", "_INBOX.>"],
  });

export const provisioned: Probe[] = [
  face("gateway_public"),
  face("gateway_loopback"),
  user("operator", {
    name: "operator: the operations that admit the operator, and the micro tools",
    publish: [
      ...["actor-grant", "actor-revoke", "actor-renew", "actor-list", "agent-retire", "drain-abandon"].map((c) =>
        ask("auth", c),
      ),
      ...["platform-assign", "supervisor-assign", "supervisor-end", "instance-retire"].map((c) => ask("auth", c)),
      `${P}.ep.inst.auth.i.[describe].${T}.n`,
      "$SRV.[PING]",
      "$SRV.[INFO].auth",
      "$SRV.[STATS].auth.id",
      "$JS.API.DIRECT.[GET].EPC_{s}.cotal.{s}.[epc].abc",
    ],
    subscribe: ["_INBOX.any"],
    notPublish: [
      ...["run-admit", "manager-prepare", "platform-control", "agent-enroll"].map((c) => never("auth", c)),
      never("exchange", "exchange-user"),
      never("custodian", "evict-principals"),
      "$JS.API.STREAM.MSG.GET.KV_cotal_records_{s}",
    ],
    notSubscribe: [`${P}.ep.one.auth.actor-grant.> auth`],
  }),
  user("operator_callout", {
    name: "operator_callout: the micro tools alone",
    publish: ["$SRV.[PING]", "$SRV.[STATS].callout"],
    subscribe: ["_INBOX.any"],
    notPublish: [never("auth", "actor-grant"), "$SYS.REQ.USER.AUTH", "$SYS._INBOX.x"],
    notSubscribe: ["$SYS.REQ.USER.AUTH"],
  }),
  user("platform_host", {
    name: "platform_host: the two doors",
    publish: [
      ask("auth", "platform-control"),
      ask("auth", "supervisor-authority"),
      `${P}.ep.one.auth.[describe].${T}.n`,
    ],
    subscribe: [],
    notPublish: [never("auth", "platform-assign"), never("auth", "manager-prepare"), "$JS.API.INFO"],
    notSubscribe: [],
  }),
  user("exchange", {
    name: "exchange: serves its queue, reads service records",
    publish: [
      `${P}.ep.[reply].[exchange].i.[0].u_x.cli.uid.n`,
      "$JS.API.STREAM.MSG.[GET].KV_cotal_[records]_{s}",
      "$JS.API.STREAM.[INFO].KV_cotal_[records]_{s}",
    ],
    ...serving("exchange", "exchange-user"),
    notPublish: [
      never("exchange", "identify"),
      never("auth", "run-admit"),
      `${P}.ep.reply.auth.i.0.u_x.cli.uid.n`,
      `${P}.ep.reply.exchange.i.1.u_x.cli.uid.n`,
      "$KV.cotal_records_{s}.svc.exchange.i.spec",
      "_INBOX_other.x",
    ],
  }),
  user("custodian", {
    name: "custodian: serves its queue, no stream",
    publish: [`${P}.ep.[reply].[custodian].i.[0].local.auth.uid.n`],
    ...serving("custodian", "evict-principals"),
    notPublish: [never("custodian", "evict-principals"), "$JS.API.INFO", "$SYS.REQ.SERVER.x.KICK"],
  }),
  user("exchange_store", {
    name: "exchange_store: reads the ledger, writes the trust row",
    publish: [
      ...["auth", "connect"].flatMap((bucket) => [
        `$JS.API.STREAM.[INFO].KV_cotal_[${bucket}]_{s}`,
        `$JS.API.STREAM.MSG.[GET].KV_cotal_[${bucket}]_{s}`,
      ]),
      "$KV.cotal_[connect]_{s}.[trust]",
    ],
    subscribe: [],
    notPublish: [
      "$KV.cotal_auth_{s}.actor.x.y",
      "$KV.cotal_connect_{s}.inbox.x",
      "$JS.API.STREAM.MSG.GET.KV_cotal_admission_{s}",
      "$JS.API.CONSUMER.CREATE.KV_cotal_auth_{s}.x.$KV.cotal_auth_{s}.>",
    ],
    notSubscribe: ["$KV.cotal_auth_{s}.>"],
  }),
  user("custodian_system", {
    name: "custodian_system: counts and kicks connections",
    publish: [
      "$SYS.REQ.SERVER.[PING].[STATSZ]",
      "$SYS.REQ.SERVER.[PING].[VARZ]",
      "$SYS.REQ.SERVER.NX.[CONNZ]",
      "$SYS.REQ.SERVER.NX.[KICK]",
    ],
    subscribe: [],
    notPublish: [
      "$SYS.REQ.SERVER.NX.RELOAD",
      "$SYS.REQ.SERVER.NX.LDM",
      "$SYS.REQ.CLAIMS.UPDATE",
      "$SYS.REQ.ACCOUNT.A.INFO",
    ],
    notSubscribe: ["$SYS.ACCOUNT.>", "$SYS.REQ.USER.AUTH", "$SYS.SERVER.>"],
  }),
  user("callout", {
    name: "callout: answers the broker, in its queue",
    publish: ["$SYS._INBOX.x.y", "_INBOX.x"],
    subscribe: ["$SYS.REQ.USER.AUTH cotal-auth-callout", "$SRV.PING.[callout]"],
    notPublish: ["$SYS.REQ.USER.AUTH", "$SYS.REQ.SERVER.PING.VARZ", never("auth", "run-admit")],
    notSubscribe: ["$SYS._INBOX.>", "_INBOX.>"],
  }),
];
