/** Probes of the credentials of one run. */
import { compilePermissions } from "../../../shared/credentials/compile.ts";
import { runHolder } from "../../../shared/credentials/roles.ts";
import { Actor, ChannelPattern, EnvelopeId } from "../../../shared/tokens.ts";
import { epoch, instanceId, person, runId, takeoverId, uid } from "../../kit/bindings.ts";
import { identity, type Probe } from "../../kit/probe.ts";

const { actor, uid: runUid } = runHolder(runId);
const me = identity(person, actor, runUid);
const byHand = identity(person, "cli");
const run = { runId, takeoverId };
const token = EnvelopeId.parse("t".repeat(43));
const granter = {
  owner: person,
  actor: Actor.parse("cli"),
  uid,
  allowSubscribe: [ChannelPattern.parse("general")],
  allowPublish: [ChannelPattern.parse("news")],
};

const values = {
  i: [instanceId, "9".repeat(32)],
  e: [String(epoch), "6"],
  r: [runId, `run-${"f".repeat(32)}`],
  k: [takeoverId, "ffffffffffffffff"],
  t: [token, "x".repeat(43)],
  g: [granter.actor, "other"],
  v: [granter.uid, "9".repeat(26)],
} as const;
const P = "cotal.{s}";
const T = "{o}.{a}.{u}";

const replay = (prefix: string) => [
  ...["[INFO]", "MSG.[NEXT]", "[DELETE]"].map((verb) => `$JS.API.CONSUMER.${verb}.WFJ_{s}.${prefix}_{r}_{k}`),
  `$JS.ACK.WFJ_{s}.${prefix}_{r}_{k}.1.1.1.1.1`,
  `$JS.API.CONSUMER.[CREATE].WFJ_{s}.${prefix}_{r}_{k}.cotal.{s}.[wfj].{r}`,
];
const records = [
  "$KV.cotal_[records]_{s}.[run].[manager].{r}.[spec]",
  "$KV.cotal_[records]_{s}.[run].[manager].{r}.[status]",
  "$KV.cotal_[records]_{s}.[program].[manager].{r}",
  "$KV.cotal_[records]_{s}.[notice].[manager].{r}.x",
  "$KV.cotal_[records]_{s}.[migration].[manager].{r}.x",
];
const chat = [
  `${P}.[chat].{o}.{g}.[news]`,
  "$JS.API.CONSUMER.[CREATE].CHAT_{s}.chathist_{o}-{g}-{v}.cotal.{s}.[chat].*.*.[general]",
];

export const runs: Probe[] = [
  {
    name: "run-driver: one run's journal and records",
    account: "space",
    of: me,
    permissions: compilePermissions("run-driver", { ...me.holder, ...run }),
    values,
    publish: [`${P}.[wfj].{r}`, ...replay("wfj"), ...records],
    subscribe: [],
    notPublish: [
      "$JS.API.CONSUMER.CREATE.WFJ_{s}.wfm_{r}_{k}.cotal.{s}.wfj.{r}",
      "$JS.API.CONSUMER.CREATE.WFJ_{s}.wfj_{r}_{k}",
      "$KV.cotal_records_{s}.cp.manager.{t}.spec",
      "$KV.cotal_records_{s}.answer.manager.{t}.x",
      "$JS.API.STREAM.MSG.GET.KV_cotal_records_{s}",
      `${P}.ep.one.manager.spawn.owner.{o}.${T}.n`,
    ],
    notSubscribe: [`${P}.wfj.{r}`, `${P}.ep.reply.*.*.*.${T}.*`],
  },
  {
    name: "run-mediator: what the run asks for, on behalf of who granted it",
    account: "space",
    of: me,
    permissions: compilePermissions("run-mediator", { ...me.holder, ...run, instanceId, epoch, granter }),
    values,
    publish: [
      ...replay("wfm"),
      ...records,
      ...chat,
      "$KV.cotal_[records]_{s}.[cp].[manager].{t}.spec".replace("{t}", "any"),
      `${P}.[epf].[manager].[cp].any`,
      `${P}.[ept].[manager].{i}.{e}.t1.[schedule]`,
      ...["[EPF]_{s}", "[EPT]_{s}", "KV_cotal_[records]_{s}", "KV_cotal_[channels]_{s}"].map(
        (stream) => `$JS.API.STREAM.MSG.[GET].${stream}`,
      ),
      ...["spawn", "turn", "despawn"].map((c) => `${P}.ep.[one].[manager].[${c}].[owner].{o}.${T}.n`),
      `${P}.ep.[inst].[manager].{i}.[resolve-cwd].[owner].{o}.${T}.n`,
      `${P}.ep.[inst].[manager].{i}.[describe].${T}.n`,
      "$JS.API.DIRECT.[GET].EPC_{s}.cotal.{s}.[epc].abc",
    ],
    subscribe: [`${P}.ep.[reply].manager.i.0.${T}.n`],
    notPublish: [
      `${P}.wfj.{r}`,
      "$JS.API.CONSUMER.CREATE.WFJ_{s}.wfj_{r}_{k}.cotal.{s}.wfj.{r}",
      "$KV.cotal_records_{s}.answer.manager.{t}.x",
      `${P}.epf.manager.eff.{o}.x`,
      `${P}.ep.one.auth.run-attempt.${T}.n`,
      `${P}.ep.one.manager.resolve-cwd.owner.{o}.${T}.n`,
      `${P}.ept.manager.{i}.{e}.t1.fire`,
    ],
    notSubscribe: [`${P}.chat.*.*.general`],
  },
  {
    name: "run-mediator under an assignment: no chat",
    account: "space",
    of: me,
    permissions: compilePermissions("run-mediator", { ...me.holder, ...run, instanceId, epoch }),
    values,
    publish: replay("wfm"),
    subscribe: [],
    notPublish: chat,
    notSubscribe: [],
  },
  {
    name: "run-operator, listing: reads records",
    account: "space",
    of: byHand,
    permissions: compilePermissions("run-operator", { ...byHand.holder, takeoverId }),
    values,
    publish: ["$JS.API.STREAM.MSG.[GET].KV_cotal_[records]_{s}"],
    subscribe: [],
    notPublish: [...replay("wfj"), "$KV.cotal_records_{s}.answer.manager.{t}.x"],
    notSubscribe: [],
  },
  {
    name: "run-operator, reading and answering: one run, one checkpoint",
    account: "space",
    of: byHand,
    permissions: compilePermissions("run-operator", { ...byHand.holder, ...run, token }),
    values,
    publish: [
      ...replay("wfj"),
      "$KV.cotal_[records]_{s}.[answer].[manager].{t}.any",
      "$KV.cotal_[records]_{s}.[cp].[manager].{t}.[spec]",
      "$KV.cotal_[records]_{s}.[cp].[manager].{t}.[status]",
      `${P}.[epf].[manager].[cp].{t}`,
    ],
    subscribe: [],
    notPublish: [`${P}.wfj.{r}`, "$KV.cotal_records_{s}.run.manager.{r}.status"],
    notSubscribe: [],
  },
];
