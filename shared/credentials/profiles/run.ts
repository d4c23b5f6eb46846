/** The three credentials of one run: its driver, its mediator, and a person's hand on it. */
import Type from "typebox";
import { SafeInteger } from "../../envelope.ts";
import { Actor, EnvelopeId, Owner, RunId, TakeoverId, Uid } from "../../tokens.ts";
import { ChannelLists } from "./agent.ts";
import { profile } from "./profile.ts";
import { each, get, words } from "./words.ts";

const HALVES = ["spec", "status"] as const;
type Words = ReturnType<typeof words>;

/** The records of a run that driver and mediator write. */
const runRecords = ({ rec }: Words, runId: string): string[] => [
  ...each(HALVES, (half) => rec(`run.manager.${runId}.${half}`)),
  rec(`program.manager.${runId}`),
  ...each(["notice", "migration"], (record) => rec(`${record}.manager.${runId}.>`)),
];

/** Appends to the journal. */
export const runDriver = profile({
  name: "run-driver",
  kind: "standing",
  bindings: { runId: RunId.schema, takeoverId: TakeoverId.schema },
  rows(b) {
    const w = words(b);
    return { publish: [`${w.P}.wfj.${b.runId}`, w.replay("wfj", b.runId, b.takeoverId), runRecords(w, b.runId)] };
  },
});

/** The actor on whose behalf a run acts, with its channel lists; an assignment has none. */
const Granter = Type.Object(
  { owner: Owner.schema, actor: Actor.schema, uid: Uid.schema, ...ChannelLists },
  { additionalProperties: false },
);

/** Does outside what the run asks for: agents, chat, checkpoints, timers. */
export const runMediator = profile({
  name: "run-mediator",
  kind: "standing",
  bindings: {
    runId: RunId.schema,
    takeoverId: TakeoverId.schema,
    instanceId: Uid.schema,
    /** The manager's process epoch. */
    epoch: SafeInteger(),
    granter: Type.Optional(Granter),
  },
  rows(b) {
    const w = words(b);
    const { P, T } = w;
    const { granter } = b;
    const instance = `${P}.ep.inst.manager.${b.instanceId}`;
    return {
      publish: [
        w.replay("wfm", b.runId, b.takeoverId),
        runRecords(w, b.runId),
        w.rec("cp.manager.>"),
        `${P}.epf.manager.cp.>`,
        `${P}.ept.manager.${b.instanceId}.${b.epoch}.*.schedule`,
        get(w.RECORDS, w.EPF, w.EPT, w.CHAN, w.MEM, w.PRES),
        granter
          ? [
              granter.allowSubscribe.map((channel) => w.chatReader(granter, channel)),
              each(granter.allowPublish, (channel) => `${P}.chat.${granter.owner}.${granter.actor}.${channel}`),
            ]
          : [],
        each(["spawn", "turn", "despawn"], (command) => `${P}.ep.one.manager.${command}.owner.${b.owner}.${T}.*`),
        each(["resolve-cwd", "spawn"], (command) => `${instance}.${command}.owner.${b.owner}.${T}.*`),
        `${instance}.describe.${T}.*`,
        w.ART,
      ],
      subscribe: w.RE,
    };
  },
});

/** Reads runs; answers one checkpoint where a token is given. */
export const runOperator = profile({
  name: "run-operator",
  kind: "one-shot",
  bindings: {
    takeoverId: TakeoverId.schema,
    runId: Type.Optional(RunId.schema),
    token: Type.Optional(EnvelopeId.schema),
  },
  rows(b) {
    const w = words(b);
    return {
      publish: [
        get(w.RECORDS),
        b.runId === undefined ? [] : w.replay("wfj", b.runId, b.takeoverId),
        b.token === undefined
          ? []
          : [
              w.rec(`answer.manager.${b.token}.*`),
              each(HALVES, (half) => w.rec(`cp.manager.${b.token}.${half}`)),
              `${w.P}.epf.manager.cp.${b.token}`,
            ],
      ],
    };
  },
});
