/** Probes of what a manager instance is given. */
import { compilePermissions } from "../../../shared/credentials/compile.ts";
import { Actor, Command, Owner } from "../../../shared/tokens.ts";
import { epoch, instanceId, local, manager, person, platform, sessionId, surface, uid } from "../../kit/bindings.ts";
import { identity, type Probe } from "../../kit/probe.ts";

const as = (name: string, owner: Owner = person) => identity(owner, `${name}_${instanceId}`);
const stranger = Owner.parse(`u_${"z".repeat(26)}`);
const serving = { endpoint: manager, instanceId, epoch, commands: surface, pools: [Command.parse("gpu")] };
const target = { owner: person, actor: Actor.parse("coder"), uid };

const values = { i: [instanceId, "9".repeat(32)], e: [String(epoch), "6"], d: [sessionId, "9".repeat(64)] } as const;
const P = "cotal.{s}";
const T = "{o}.{a}.{u}";

/** What operations §13 says a manager's own connection may call. */
const MANAGERS_OPERATIONS = [
  ...["run-admit", "run-revoke", "run-attempt", "run-operator", "manager-prepare", "manager-register"],
  ...["manager-activate", "manager-renew", "manager-renew-standing", "manager-renew-run", "manager-transfer-reader"],
  ...["manager-retire", "manager-session", "manager-session-end", "manager-maintain-evict"],
  ...["manager-maintain-reconcile", "manager-scan-goals", "manager-authorize-admin", "agent-validate-retained"],
  ...["agent-runtime-create", "agent-runtime-status", "agent-enroll", "agent-prepare-retirement", "actor-renew"],
];
/** And what it may not. */
const OTHERS_OPERATIONS = [
  ...["agent-retire", "actor-revoke", "actor-grant", "actor-list", "drain-abandon", "platform-assign"],
  ...["supervisor-assign", "platform-control", "supervisor-authority", "supervisor-end", "instance-retire"],
];

/** The same key under which the permissions were compiled. */
const withOwn = (make: (of: Probe["of"]) => Probe["permissions"], of: Probe["of"]) => ({ of, permissions: make(of) });

const supervisor: Probe = {
  name: "remote-manager supervisor: the operations that admit a manager",
  account: "space",
  ...withOwn((of) => compilePermissions("supervisor", of.holder), as("manager")),
  publish: [
    ...MANAGERS_OPERATIONS.map((name) => `${P}.ep.[one].[auth].[${name}].${T}.n`),
    `${P}.ep.one.auth.[describe].${T}.n`,
    "$JS.API.DIRECT.[GET].EPC_{s}.cotal.{s}.[epc].abc",
  ],
  subscribe: [`${P}.ep.[reply].auth.i.0.${T}.n`],
  notPublish: [
    ...OTHERS_OPERATIONS.map((name) => `${P}.ep.one.auth.${name}.${T}.n`),
    `${P}.ep.one.auth.retire-lifecycle.exact.{o}.coder.{u}.${T}.n`,
    `${P}.ep.one.exchange.identify.${T}.n`,
    `${P}.ep.one.custodian.evict-principals.${T}.n`,
    `${P}.ep.inst.auth.i.run-admit.${T}.n`,
    `${P}.epc.abc`,
    "$JS.API.STREAM.MSG.GET.KV_cotal_records_{s}",
  ],
  notSubscribe: [`${P}.ep.one.manager.>`],
};

/** A person's manager hears what is aimed at that person; the space's own everything, in its queue. */
const serve = (owner: Owner): Probe => {
  const spaces = owner !== person;
  const own = (rail: string) => [
    `${rail}.[one].[manager].[spawn].[owner].{o}.> manager`,
    `${rail}.[all].[manager].[spawn].[owner].{o}.>`,
    `${rail}.[one].[manager].[whoami].[self].{o}.> manager`,
  ];
  const all = (rail: string) => [
    ...["run-start", "spawn", "describe"].map((command) => `${rail}.[one].[manager].[${command}].> manager`),
    `${rail}.[all].[manager].[list].>`,
  ];
  const rails = [`${P}.ep`, `${P}.ep.[v1]`];
  return {
    name: `endpoint-serve of ${owner.slice(0, 2)}: its replies, its events, its commands`,
    account: "space",
    ...withOwn((of) => compilePermissions("endpoint-serve", { ...of.holder, ...serving }), as("manager_serve", owner)),
    values,
    publish: [
      `${P}.ep.[reply].[manager].{i}.{e}.u_x.cli.uid.n`,
      `${P}.ep.[v1].[reply].[manager].{i}.{e}.u_x.cli.uid.g.n`,
      `${P}.[epe].[manager].{i}.{e}.goal.x`,
      `${P}.[ept].[manager].{i}.{e}.t1.[schedule]`,
      `${P}.[epr].[manager].{i}.{e}.[svc].[manager].{i}`,
      "$JS.API.CONSUMER.MSG.[NEXT].EPF_{s}.eff_[manager]",
      "$JS.API.CONSUMER.MSG.[NEXT].EPW_{s}.pool_[manager]_[gpu]",
      "$JS.ACK.EPW_{s}.pool_[manager]_[gpu].1.1.1.1.1",
    ],
    subscribe: [
      ...rails.flatMap((rail) => [`${rail}.[inst].[manager].{i}.[run-start].>`, ...(spaces ? all(rail) : own(rail))]),
      `${P}.ep.[inst].[manager].{i}.[describe].>`,
      `${P}.[ept].[manager].{i}.{e}.t1.[fire]`,
    ],
    notPublish: [
      `${P}.ep.one.auth.run-admit.${T}.n`,
      `${P}.ep.one.manager.spawn.owner.{o}.${T}.n`,
      "$JS.API.CONSUMER.CREATE.EPW_{s}.pool_manager_gpu.cotal.demo.epw.>",
      `${P}.epf.manager.eff.{o}.x`,
      "$KV.cotal_records_{s}.svc.manager.{i}.status",
    ],
    notSubscribe: [
      `${P}.ep.one.manager.>`,
      `${P}.ep.one.manager.spawn.>`,
      `${P}.ep.one.auth.run-admit.> auth`,
      `${P}.ep.reply.>`,
      ...(spaces ? [] : [`${P}.ep.one.manager.run-start.> manager`, `${P}.ep.all.manager.list.>`]),
    ],
  };
};

const goals = (owner: Owner): Probe => {
  // The space's own manager writes for everybody: there the owner is no binding.
  const W = owner === person ? "{o}" : stranger;
  return {
    name: `goal-writer of ${owner.slice(0, 2)}: facts and records of its owner's goals`,
    account: "space",
    ...withOwn((of) => compilePermissions("goal-writer", of.holder), as("manager_goal", owner)),
    publish: [
      `${P}.[epf].[manager].[goal].${W}.cli.uid.g1.[result]`,
      `${P}.[epf].[manager].[goal].${W}.cli.uid.g1.[bind]`,
      `${P}.[epf].[manager].[eff].${W}.cli.uid.x`,
      `${P}.[epf].[manager].[receipt].${W}.x`,
      `${P}.[epf].[manager].[wrk].gpu.${W}.cli.uid.x`,
      `${P}.[epf].[manager].[cp].token`,
      ...["goal", "goaleff", "goalidx"].map((r) => `$KV.cotal_[records]_{s}.[${r}].[manager].${W}.cli.uid.g1`),
      `$KV.cotal_[records]_{s}.[lease].[manager].pool.${W}.x`,
      "$KV.cotal_records_{s}.[cp].[manager].token.spec",
      "$KV.cotal_records_{s}.[epname].[manager].x",
      "$KV.cotal_records_{s}.[epmig].[manager]",
      "$JS.API.STREAM.MSG.[GET].[EPF]_{s}",
      "$JS.API.STREAM.MSG.[GET].KV_cotal_[records]_{s}",
    ],
    subscribe: [],
    notPublish: [
      `${P}.epf.manager.dec.{o}.cli.uid.x`,
      `${P}.epf.manager.goal.{o}.cli.uid.g1.x.result`,
      "$KV.cotal_records_{s}.svc.manager.x.spec",
      "$KV.cotal_records_{s}.oblig.ep.manager.{o}.x",
      "$KV.cotal_records_{s}.run.manager.x.status",
      `${P}.ep.one.auth.run-admit.${T}.n`,
    ],
    notSubscribe: [`${P}.epf.>`],
  };
};

const rest: Probe[] = [
  {
    name: "remote-manager executor: the contracts and record of one instance",
    account: "space",
    ...withOwn((of) => compilePermissions("executor", { ...of.holder, instanceId }), as("manager_exec")),
    values,
    publish: [
      `${P}.[epc].abc`,
      "$KV.cotal_[records]_{s}.[svc].[manager].{i}.[spec]",
      "$KV.cotal_[records]_{s}.[svc].[manager].{i}.[status]",
      "$JS.API.STREAM.MSG.[GET].KV_cotal_[records]_{s}",
    ],
    subscribe: [`${P}.ep.[reply].auth.i.0.${T}.n`],
    notPublish: [
      "$KV.cotal_records_{s}.svc.auth.{i}.spec",
      "$KV.cotal_records_{s}.cp.manager.x.spec",
      `${P}.ep.one.auth.manager-register.${T}.n`,
      "$JS.API.STREAM.PURGE.EPC_{s}",
      "$JS.API.STREAM.MSG.GET.EPC_{s}",
    ],
    notSubscribe: [],
  },
  {
    name: "session-ledger: nothing",
    account: "space",
    ...withOwn((of) => compilePermissions("session-ledger", of.holder), as("manager_session")),
    publish: [],
    subscribe: [],
    notPublish: ["x", `${P}.eps.manager.x.7.out`, `${P}.ep.one.auth.describe.${T}.n`, "$JS.API.INFO", "_INBOX_{n}.x"],
    notSubscribe: [`${P}.eps.>`, `${P}.ep.reply.*.*.*.${T}.*`],
  },
  {
    name: "session-serving: its half of one session",
    account: "space",
    ...withOwn((of) => compilePermissions("session-serving", { ...of.holder, sessionId, epoch }), as("manager_serve")),
    values,
    publish: [`${P}.[eps].[manager].{d}.{e}.[out]`],
    subscribe: [`${P}.[eps].[manager].{d}.{e}.[in]`],
    notPublish: [`${P}.eps.manager.{d}.{e}.in`, `${P}.ep.reply.manager.{i}.{e}.{o}.cli.{u}.n`],
    notSubscribe: [`${P}.eps.manager.{d}.{e}.out`],
  },
  {
    name: "transfer-reader: the instance's transfer bucket",
    account: "space",
    ...withOwn((of) => compilePermissions("transfer-reader", { ...of.holder, instanceId }), as("manager")),
    values,
    publish: [
      "$JS.API.STREAM.[INFO].OBJ_cotal_xfer_{s}_{i}",
      "$JS.API.DIRECT.[GET].OBJ_cotal_xfer_{s}_{i}.$O.cotal_xfer_{s}_{i}.C.abc",
    ],
    subscribe: [],
    notPublish: [
      "$O.cotal_xfer_{s}_{i}.C.abc",
      "$JS.API.CONSUMER.CREATE.OBJ_cotal_xfer_{s}_{i}.x.$O.cotal_xfer_{s}_{i}.C.>",
      "$JS.API.CONSUMER.CREATE.OBJ_cotal_xfer_{s}_{i}",
    ],
    notSubscribe: ["$O.cotal_xfer_{s}_{i}.>"],
  },
  {
    name: "retirement-requester: one named lifecycle",
    account: "space",
    ...withOwn((of) => compilePermissions("retirement-requester", { ...of.holder, target }), as("manager_serve")),
    values: { x: [target.owner, stranger], y: [target.actor, "other"], z: [target.uid, "9".repeat(26)] },
    publish: [
      `${P}.ep.[one].[auth].[retire-lifecycle].[exact].{x}.{y}.{z}.${T}.n`,
      `${P}.ep.one.auth.[describe].${T}.n`,
    ],
    subscribe: [`${P}.ep.[reply].auth.i.0.${T}.n`],
    notPublish: [`${P}.ep.one.auth.manager-retire.${T}.n`, `${P}.ep.one.auth.retire-lifecycle.${T}.n`],
    notSubscribe: [],
  },
];

export const managers: Probe[] = [
  supervisor,
  ...[person, platform, local].flatMap((owner) => [serve(owner), goals(owner)]),
  ...rest,
];
