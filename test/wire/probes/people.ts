/** Probes of the views of a person or an agent. */
import { compilePermissions } from "../../../shared/credentials/compile.ts";
import { ChannelPattern, Generation, Hex64, RoleName } from "../../../shared/tokens.ts";
import { epoch, instanceId, manager, person, sessionId } from "../../kit/bindings.ts";
import { identity, type Probe } from "../../kit/probe.ts";

const me = identity(person, "cli");
const lists = {
  allowSubscribe: [ChannelPattern.parse("general"), ChannelPattern.parse("team.>")],
  allowPublish: [ChannelPattern.parse("general")],
};
const generation = Generation.parse("0".repeat(32));
const token = "1".repeat(32);
const hex = Hex64.parse("c".repeat(64));
const other = (length: number) => "9".repeat(length);

const instance = { i: [instanceId, other(32)], e: [String(epoch), "6"], d: [sessionId, other(64)] } as const;
const P = "cotal.{s}";
const T = "{o}.{a}.{u}";

const reader = (stream: string, name: string) =>
  ["[INFO]", "MSG.[NEXT]"]
    .map((verb) => `$JS.API.CONSUMER.${verb}.${stream}.${name}`)
    .concat(`$JS.ACK.${stream}.${name}.1.1.1.1.1`);
const watch = (bucket: string, name: string) => [
  ...reader(`KV_cotal_[${bucket}]_{s}`, `${name}_{o}-{a}-{u}`),
  `$JS.API.CONSUMER.[CREATE].KV_cotal_[${bucket}]_{s}.${name}_{o}-{a}-{u}.$KV.cotal_[${bucket}]_{s}.>`,
  `$JS.API.CONSUMER.[DELETE].KV_cotal_[${bucket}]_{s}.${name}_{o}-{a}-{u}`,
];

export const people: Probe[] = [
  {
    name: "agent: its own triple, channels, mailbox and watches",
    account: "space",
    of: me,
    permissions: compilePermissions("agent", { ...me.holder, ...lists, spawn: true, role: RoleName.parse("reviewer") }),
    publish: [
      `${P}.[chat].{o}.{a}.[general]`,
      `${P}.[inst].u_x.coder.{o}.{a}`,
      `${P}.[svc].reviewer.{o}.{a}`,
      `${P}.ep.[one].manager.[describe].${T}.n`,
      `${P}.ep.[inst].manager.i.[describe].${T}.n`,
      `${P}.ep.[one].[delivery].[join].[self].${T}.n`,
      `${P}.ep.[one].[manager].[whoami].[self].${T}.n`,
      `${P}.ep.[one].[manager].[spawn].[owner].{o}.${T}.n`,
      "$JS.API.STREAM.[INFO].CHAT_{s}",
      ...reader("CHAT_{s}", "chathist_{o}-{a}-{u}"),
      "$JS.API.CONSUMER.[CREATE].CHAT_{s}.chathist_{o}-{a}-{u}.cotal.{s}.[chat].*.*.[general]",
      "$JS.API.CONSUMER.[CREATE].CHAT_{s}.chathist_{o}-{a}-{u}.cotal.{s}.[chat].*.*.[team].>",
      ...reader("DM_{s}", "dm_{o}-{a}-{u}"),
      ...reader("DLV_{s}", "dlv_{o}-{a}-{u}"),
      ...reader("TASK_{s}", "svc_[reviewer]"),
      "$KV.cotal_[presence]_{s}.{o}.{a}",
      ...watch("presence", "pres"),
      ...watch("channels", "chan"),
      "$JS.API.STREAM.MSG.[GET].KV_cotal_[channels]_{s}",
      "$JS.API.INFO",
    ],
    subscribe: [
      `${P}.ep.[reply].manager.i.0.${T}.n`,
      `${P}.[chat].*.*.[general]`,
      `${P}.[chat].*.*.[team].>`,
      `${P}.[epe].*.*.*.[goal].${T}.>`,
    ],
    notPublish: [
      `${P}.ep.one.auth.actor-grant.${T}.n`,
      `${P}.ep.one.auth.describe.local.operator.{u}.n`,
      `${P}.ep.one.manager.run-start.${T}.n`,
      "$JS.API.CONSUMER.CREATE.DM_{s}",
      "$JS.API.CONSUMER.CREATE.DM_{s}.dm_{o}-{a}-{u}.cotal.{s}.inst.>",
      "$JS.API.CONSUMER.CREATE.CHAT_{s}.mine.cotal.{s}.chat.*.*.general",
      "$JS.API.CONSUMER.CREATE.CHAT_{s}",
      "$JS.API.STREAM.MSG.GET.CHAT_{s}",
      "$JS.API.STREAM.MSG.GET.KV_cotal_records_{s}",
      "$KV.cotal_records_{s}.cp.manager.x.spec",
      "$KV.cotal_channels_{s}.x",
      `${P}.ep.reply.auth.i.0.${T}.n`,
    ],
    notSubscribe: [`${P}.inst.{o}.{a}.>`, `${P}.svc.reviewer.>`, `${P}.chat.>`, `${P}.ep.one.auth.>`, "_INBOX.>"],
  },
  {
    name: "agent: without scope, role and lists",
    account: "space",
    of: me,
    permissions: compilePermissions("agent", { ...me.holder, allowSubscribe: [], allowPublish: [], spawn: false }),
    publish: [`${P}.ep.one.manager.whoami.self.${T}.n`],
    subscribe: [],
    notPublish: [
      `${P}.chat.{o}.{a}.general`,
      `${P}.ep.one.manager.spawn.owner.{o}.${T}.n`,
      "$JS.API.CONSUMER.INFO.TASK_{s}.svc_reviewer",
      "$JS.API.CONSUMER.CREATE.CHAT_{s}.chathist_{o}-{a}-{u}.cotal.{s}.chat.*.*.general",
    ],
    notSubscribe: [`${P}.chat.*.*.general`],
  },
  {
    name: "admin: reads everything, grants and revokes",
    account: "space",
    of: me,
    permissions: compilePermissions("admin", me.holder),
    publish: [
      ...["actor-grant", "actor-revoke", "actor-renew", "actor-list"].map((c) => `${P}.ep.[one].[auth].[${c}].${T}.n`),
      "$JS.API.CONSUMER.[CREATE].CHAT_{s}",
      "$JS.API.CONSUMER.[CREATE].DM_{s}.any.cotal.demo.inst.>",
      ...watch("membership", "mem"),
    ],
    subscribe: [`${P}.[chat].>`, `${P}.[inst].>`, `${P}.[svc].>`],
    notPublish: [
      `${P}.ep.one.auth.instance-retire.${T}.n`,
      `${P}.chat.{o}.{a}.general`,
      "$KV.cotal_channels_{s}.x",
      "$JS.API.CONSUMER.CREATE.TASK_{s}.any.cotal.demo.svc.>",
      "$JS.API.CONSUMER.DELETE.CHAT_{s}.any",
    ],
    notSubscribe: [`${P}.ep.one.auth.>`, `${P}.ep.reply.*.*.*.${T}.*`, `${P}.epe.>`],
  },
  {
    name: "manager-caller, plain: one instance",
    account: "space",
    of: me,
    permissions: compilePermissions("manager-caller", { ...me.holder, instanceId }),
    values: instance,
    publish: [
      `${P}.ep.[inst].[manager].{i}.[run-start].${T}.n`,
      `${P}.ep.[inst].[manager].{i}.[describe].${T}.n`,
      `${P}.ep.[inst].[manager].{i}.[whoami].[self].${T}.n`,
      `${P}.ep.[inst].[manager].{i}.[spawn].[owner].{o}.${T}.n`,
      "$JS.API.DIRECT.[GET].EPC_{s}.cotal.{s}.[epc].abc",
    ],
    subscribe: [`${P}.ep.[reply].manager.i.0.${T}.n`, `${P}.[epe].[manager].{i}.*.[goal].${T}.>`],
    notPublish: [
      `${P}.ep.v1.inst.manager.{i}.run-start.${T}.${generation}.n`,
      `${P}.ep.one.manager.run-start.${T}.n`,
      `$JS.API.DIRECT.GET.KV_cotal_accepted_{s}.$KV.cotal_accepted_{s}.accepted.v1.${token}`,
    ],
    notSubscribe: [`${P}.ep.v1.reply.*.*.*.${T}.${generation}.*`],
  },
  {
    name: "manager-caller, issued: its generation on the v1 rail alone",
    account: "space",
    of: me,
    permissions: compilePermissions("manager-caller", { ...me.holder, instanceId, issued: { generation, token } }),
    values: { ...instance, g: [generation, "f".repeat(32)], t: [token, "2".repeat(32)] },
    publish: [
      `${P}.ep.[v1].[inst].[manager].{i}.[run-start].${T}.{g}.n`,
      `${P}.ep.[v1].[inst].[manager].{i}.[run-answer].[self].${T}.{g}.n`,
      `${P}.ep.[v1].[inst].[manager].{i}.[spawn].[owner].{o}.${T}.{g}.n`,
      "$JS.API.DIRECT.[GET].KV_cotal_[accepted]_{s}.$KV.cotal_accepted_{s}.accepted.v1.{t}",
    ],
    subscribe: [`${P}.ep.v1.[reply].manager.i.0.${T}.{g}.n`, `${P}.ep.[reply].manager.i.0.${T}.n`],
    notPublish: [
      `${P}.ep.inst.manager.{i}.run-start.${T}.n`,
      `${P}.ep.v1.one.manager.run-start.${T}.{g}.n`,
      `${P}.ep.v1.inst.manager.{i}.run-start.${T}.n`,
      "$KV.cotal_accepted_{s}.accepted.v1.{t}",
    ],
    notSubscribe: [],
  },
  {
    name: "session-caller: its half of one session",
    account: "space",
    of: me,
    permissions: compilePermissions("session-caller", { ...me.holder, endpoint: manager, sessionId, epoch }),
    values: instance,
    publish: [`${P}.[eps].[manager].{d}.{e}.[in]`, `${P}.ep.[one].[auth].[manager-session-end].${T}.n`],
    subscribe: [`${P}.[eps].[manager].{d}.{e}.[out]`],
    notPublish: [`${P}.eps.manager.{d}.{e}.out`, "$JS.API.INFO"],
    notSubscribe: [`${P}.eps.manager.{d}.{e}.in`],
  },
  {
    name: "transfer-writer: one object of known content",
    account: "space",
    of: me,
    permissions: compilePermissions("transfer-writer", { ...me.holder, instanceId, hex }),
    values: { ...instance, x: [hex, "d".repeat(64)], b: [b64(hex), b64("d".repeat(64))] },
    publish: [
      "$O.cotal_xfer_{s}_{i}.[C].{x}",
      "$O.cotal_xfer_{s}_{i}.[M].{b}",
      "$JS.API.DIRECT.[GET].OBJ_cotal_xfer_{s}_{i}.$O.cotal_xfer_{s}_{i}.[C].{x}",
      "$JS.API.DIRECT.[GET].OBJ_cotal_xfer_{s}_{i}.$O.cotal_xfer_{s}_{i}.[M].{b}",
    ],
    subscribe: [],
    notPublish: ["$JS.API.STREAM.MSG.GET.OBJ_cotal_xfer_{s}_{i}", "$JS.API.STREAM.INFO.OBJ_cotal_xfer_{s}_{i}"],
    notSubscribe: [],
  },
  {
    name: "channel-writer: the channel registry",
    account: "space",
    of: me,
    permissions: compilePermissions("channel-writer", me.holder),
    publish: ["$KV.cotal_[channels]_{s}.general", "$JS.API.STREAM.MSG.[GET].KV_cotal_[channels]_{s}"],
    subscribe: [],
    notPublish: ["$KV.cotal_presence_{s}.x", "$KV.cotal_membership_{s}.x", `${P}.chat.{o}.{a}.general`],
    notSubscribe: [`${P}.chat.>`],
  },
  {
    name: "channel-purger: chat alone",
    account: "space",
    of: me,
    permissions: compilePermissions("channel-purger", me.holder),
    publish: ["$JS.API.STREAM.[PURGE].[CHAT]_{s}", "$JS.API.STREAM.[INFO].[CHAT]_{s}"],
    subscribe: [],
    notPublish: ["$JS.API.STREAM.PURGE.DM_{s}", "$JS.API.STREAM.PURGE.WFJ_{s}"],
    notSubscribe: [],
  },
  {
    name: "purger: chat, mail and tasks",
    account: "space",
    of: me,
    permissions: compilePermissions("purger", me.holder),
    publish: ["CHAT", "DM", "TASK"].map((stream) => `$JS.API.STREAM.[PURGE].[${stream}]_{s}`),
    subscribe: [],
    notPublish: ["$JS.API.STREAM.PURGE.DLV_{s}", "$JS.API.STREAM.PURGE.EPC_{s}"],
    notSubscribe: [],
  },
  {
    name: "deployer: the person's own agents",
    account: "space",
    of: me,
    permissions: compilePermissions("deployer", me.holder),
    publish: [`${P}.ep.[one].[manager].[despawn].[owner].{o}.${T}.n`, `${P}.ep.one.manager.[describe].${T}.n`],
    subscribe: [`${P}.ep.[reply].manager.i.0.${T}.n`],
    notPublish: [`${P}.ep.one.manager.run-start.${T}.n`, `${P}.ep.one.manager.whoami.self.${T}.n`],
    notSubscribe: [],
  },
];

function b64(text: string): string {
  return Buffer.from(text).toString("base64url");
}
