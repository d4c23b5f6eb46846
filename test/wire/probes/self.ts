/** Probes of what `auth` and `callout` sign for themselves. */
import { compilePermissions } from "../../../shared/credentials/compile.ts";
import { epoch, instanceId, local } from "../../kit/bindings.ts";
import { identity, type Probe } from "../../kit/probe.ts";
import { ask, never, P, serving, T } from "./serving.ts";

const own = identity(local, "auth");
const callout = identity(local, "callout");
const serve = identity(local, `auth_serve_${instanceId}`);
const info = (...streams: string[]) => streams.map((stream) => `$JS.API.STREAM.[INFO].${stream}`);
const get = (...streams: string[]) => streams.map((stream) => `$JS.API.STREAM.MSG.[GET].${stream}`);
const AUTHORITY = ["auth", "connect", "admission", "issued"].map((bucket) => `KV_cotal_[${bucket}]_{s}`);

export const self: Probe[] = [
  {
    name: "service-serve: one incarnation of auth, in its queue",
    account: "space",
    of: serve,
    permissions: compilePermissions("service-serve", { ...serve.holder, instanceId, epoch }),
    values: { i: [instanceId, "9".repeat(32)], e: [String(epoch), "6"] },
    publish: [`${P}.ep.[reply].[auth].{i}.{e}.u_x.cli.uid.n`],
    ...serving("auth", "run-admit"),
    notPublish: [never("auth", "run-admit"), "$JS.API.INFO", "$KV.cotal_records_{s}.svc.auth.{i}.spec", `${P}.epc.abc`],
  },
  {
    name: "work of auth: the space account's records and observations",
    account: "space",
    of: own,
    permissions: compilePermissions("work", { ...own.holder, service: "auth" }),
    publish: [
      "$KV.cotal_[records]_{s}.[svc].auth.i.spec",
      "$KV.cotal_[records]_{s}.[oblig].ep.x",
      `${P}.[epc].abc`,
      `${P}.[epf].manager.[dec].x`,
      "$JS.API.STREAM.MSG.[DELETE].[OBS]_{s}",
      ...info("KV_cotal_[records]_{s}", "[OBS]_{s}", "[WFJ]_{s}", "[EPC]_{s}", "[EPF]_{s}", "[EPW]_{s}", "[EPE]_{s}"),
      ...get("KV_cotal_[records]_{s}", "[OBS]_{s}", "[WFJ]_{s}", "[EPC]_{s}", "[EPF]_{s}"),
      ...["KV_cotal_[records]_{s}", "KV_cotal_[accepted]_{s}", "[OBS]_{s}", "[EPC]_{s}"].map(
        (stream) => `$JS.API.STREAM.[CREATE].${stream}`,
      ),
      ...["evict-principals", "principal-liveness", "connection-liveness"].map((c) => ask("custodian", c)),
      ask("exchange", "identify"),
    ],
    subscribe: [],
    notPublish: [
      "$JS.API.STREAM.CREATE.WFJ_{s}",
      "$JS.API.STREAM.MSG.DELETE.EPC_{s}",
      "$JS.API.STREAM.MSG.DELETE.KV_cotal_records_{s}",
      "$JS.API.CONSUMER.CREATE.OBS_{s}.x.cotal.demo.>",
      "$KV.cotal_records_{s}.run.manager.x.status",
      "$KV.cotal_accepted_{s}.x",
      `${P}.epf.manager.eff.x`,
      `${P}.wfj.run`,
      never("exchange", "exchange-user"),
      never("auth", "run-admit"),
      `${P}.ep.one.manager.run-start.${T}.n`,
    ],
    notSubscribe: [`${P}.ep.one.auth.run-admit.> auth`, `${P}.ep.one.manager.run-start.>`],
  },
  {
    name: "work of callout: accepted rows",
    account: "space",
    of: callout,
    permissions: compilePermissions("work", { ...callout.holder, service: "callout" }),
    publish: ["$KV.cotal_[accepted]_{s}.x", ...info("KV_cotal_[accepted]_{s}"), ...get("KV_cotal_[accepted]_{s}")],
    subscribe: [],
    notPublish: [
      "$KV.cotal_records_{s}.svc.auth.i.spec",
      "$JS.API.STREAM.CREATE.KV_cotal_accepted_{s}",
      "$JS.API.STREAM.MSG.GET.KV_cotal_records_{s}",
      never("custodian", "evict-principals"),
    ],
    notSubscribe: [],
  },
  {
    name: "store of auth: the ledger's families and the admission store",
    account: "authority",
    of: own,
    permissions: compilePermissions("store", { ...own.holder, service: "auth" }),
    publish: [
      ...["actor", "lifecycle", "uid", "gate", "epgate", "cred", "epcred", "session", "stage", "frontier"].map(
        (family) => `$KV.cotal_[auth]_{s}.[${family}].x`,
      ),
      ...["manager", "bymanager", "assignment"].map((family) => `$KV.cotal_[auth]_{s}.[${family}].x`),
      "$KV.cotal_[auth]_{s}.[plane]",
      "$KV.cotal_[admission]_{s}.x",
      ...info(...AUTHORITY),
      ...get("KV_cotal_[auth]_{s}", "KV_cotal_[admission]_{s}", "KV_cotal_[issued]_{s}"),
      ...AUTHORITY.map((stream) => `$JS.API.STREAM.[CREATE].${stream}`),
    ],
    subscribe: [],
    notPublish: [
      "$KV.cotal_connect_{s}.trust",
      "$KV.cotal_connect_{s}.inbox.x",
      "$KV.cotal_issued_{s}.v1.x",
      "$KV.cotal_auth_{s}.planes",
      "$JS.API.STREAM.MSG.DELETE.KV_cotal_auth_{s}",
      "$JS.API.STREAM.UPDATE.KV_cotal_auth_{s}",
      "$JS.API.STREAM.PURGE.KV_cotal_auth_{s}",
      "$JS.API.CONSUMER.CREATE.KV_cotal_auth_{s}.x.$KV.cotal_auth_{s}.>",
    ],
    notSubscribe: ["$KV.cotal_auth_{s}.>"],
  },
  {
    name: "store of callout: connection rows and issued evidence",
    account: "authority",
    of: callout,
    permissions: compilePermissions("store", { ...callout.holder, service: "callout" }),
    publish: [
      "$KV.cotal_[connect]_{s}.[inbox].x",
      "$KV.cotal_[issued]_{s}.v1.x",
      ...["auth", "connect", "issued"].flatMap((bucket) => get(`KV_cotal_[${bucket}]_{s}`)),
    ],
    subscribe: [],
    notPublish: [
      "$KV.cotal_connect_{s}.trust",
      "$KV.cotal_auth_{s}.actor.x.y",
      "$KV.cotal_admission_{s}.x",
      "$JS.API.STREAM.CREATE.KV_cotal_connect_{s}",
    ],
    notSubscribe: [],
  },
  {
    name: "scan of the authority account: consumers of the ledger",
    account: "authority",
    of: own,
    permissions: compilePermissions("scan", { ...own.holder, account: "authority" }),
    publish: [
      ...["CREATE", "INFO", "MSG.NEXT", "DELETE"].map(
        (verb) => `$JS.API.CONSUMER.[${verb}].KV_cotal_[auth]_{s}.scan-x`,
      ),
      ...info("KV_cotal_[auth]_{s}"),
    ],
    subscribe: [],
    notPublish: [
      "$KV.cotal_auth_{s}.actor.x.y",
      "$JS.API.STREAM.MSG.GET.KV_cotal_auth_{s}",
      "$JS.API.CONSUMER.CREATE.KV_cotal_connect_{s}.x.y",
    ],
    notSubscribe: ["$KV.cotal_auth_{s}.>"],
  },
  {
    name: "scan of the space account: consumers of records and mailboxes",
    account: "space",
    of: own,
    permissions: compilePermissions("scan", { ...own.holder, account: "space" }),
    publish: [
      ...["KV_cotal_[records]_{s}", "[DM]_{s}", "[DLV]_{s}"].flatMap((stream) => [
        `$JS.API.CONSUMER.[CREATE].${stream}.x.y`,
        `$JS.API.CONSUMER.[DELETE].${stream}.x`,
      ]),
      "$JS.API.CONSUMER.[CREATE].[TASK]_{s}.svc_reviewer.y",
    ],
    subscribe: [],
    notPublish: [
      "$JS.API.CONSUMER.DELETE.TASK_{s}.svc_reviewer",
      "$JS.API.CONSUMER.CREATE.CHAT_{s}.x.y",
      "$JS.API.CONSUMER.CREATE.OBS_{s}.x.y",
      "$JS.API.CONSUMER.CREATE.WFJ_{s}.x.y",
      "$JS.API.STREAM.MSG.GET.DM_{s}",
    ],
    notSubscribe: [`${P}.inst.>`],
  },
];
