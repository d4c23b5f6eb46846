/** What a manager instance is given beside its serve credential. */

import Type from "typebox";
import { SafeInteger } from "../../envelope.ts";
import { Actor, Owner, SessionId, Uid } from "../../tokens.ts";
import { profile } from "./profile.ts";
import { requests } from "./requests.ts";
import { dget, each, get, info, isSpacesOwn, words } from "./words.ts";

/** Asks the authority, for as long as it is renewed. */
export const supervisor = profile({
  name: "remote-manager",
  kind: "standing",
  bindings: {},
  rows(b) {
    const w = words(b);
    return { publish: [requests(w, "manager"), w.DESC, w.ART], subscribe: w.RE };
  },
});

/** Publishes the contracts and the record of one instance. */
export const executor = profile({
  name: "remote-manager",
  kind: "one-shot",
  bindings: { instanceId: Uid.schema },
  rows(b) {
    const { P, rec, RECORDS, RE } = words(b);
    return {
      publish: [
        `${P}.epc.*`,
        each(["spec", "status"], (half) => rec(`svc.manager.${b.instanceId}.${half}`)),
        get(RECORDS),
      ],
      subscribe: RE,
    };
  },
});

/** Records goals and facts; the space's own manager those of every owner. */
export const goalWriter = profile({
  name: "goal-writer",
  kind: "standing",
  bindings: {},
  rows(b) {
    const { P, rec, EPF, RECORDS } = words(b);
    const W = isSpacesOwn(b.owner) ? "*" : b.owner;
    const facts = `${P}.epf.manager`;
    return {
      publish: [
        each(["bind", "result"], (fact) => `${facts}.goal.${W}.*.*.*.${fact}`),
        each(["eff", "receipt"], (fact) => `${facts}.${fact}.${W}.>`),
        `${facts}.wrk.*.${W}.>`,
        `${facts}.cp.>`,
        each(["goal", "goaleff", "goalidx"], (record) => rec(`${record}.manager.${W}.>`)),
        rec(`lease.manager.*.${W}.>`),
        each(["cp", "epname"], (record) => rec(`${record}.manager.>`)),
        rec("epmig.manager"),
        get(EPF, RECORDS),
      ],
    };
  },
});

/** Holds nothing: its row alone counts. */
export const sessionLedger = profile({
  name: "session-ledger",
  kind: "standing",
  bindings: {},
  rows: () => ({ publish: [] }),
});

/** The serving half of one session. */
export const sessionServing = profile({
  name: "session-serving",
  kind: "one-shot",
  bindings: { sessionId: SessionId.schema, epoch: SafeInteger() },
  rows(b) {
    const session = `${words(b).P}.eps.manager.${b.sessionId}.${b.epoch}`;
    return { publish: `${session}.out`, subscribe: `${session}.in` };
  },
});

/** Reads the instance's transfer bucket; the manager makes and owns that stream. */
export const transferReader = profile({
  name: "transfer-reader",
  kind: "one-shot",
  bindings: { instanceId: Uid.schema },
  rows(b) {
    const bucket = `cotal_xfer_${b.space}_${b.instanceId}`;
    return { publish: [info(`OBJ_${bucket}`), dget(`OBJ_${bucket}`, `$O.${bucket}.>`)] };
  },
});

/** Asks for the retirement of one named lifecycle. */
export const retirementRequester = profile({
  name: "retirement-requester",
  kind: "one-shot",
  bindings: {
    target: Type.Object({ owner: Owner.schema, actor: Actor.schema, uid: Uid.schema }, { additionalProperties: false }),
  },
  rows(b) {
    const w = words(b);
    const target = `${b.target.owner}.${b.target.actor}.${b.target.uid}`;
    return { publish: [requests(w, "requester", target), w.DESC, w.ART], subscribe: w.RE };
  },
});
