/** The other views of a person: administration, one session, one transfer, channel upkeep, deployment. */
import Type from "typebox";
import { SafeInteger } from "../../envelope.ts";
import { EndpointLabel, Hex64, SessionId, Uid } from "../../tokens.ts";
import { MANAGER } from "./commands.ts";
import { MeshStreams, profile } from "./profile.ts";
import { requests } from "./requests.ts";
import { consumers, dget, each, get, info, words } from "./words.ts";

/** Reads everything, grants and revokes. */
export const admin = profile({
  name: "admin",
  kind: "view",
  bindings: { streams: Type.Optional(MeshStreams) },
  rows(b) {
    const w = words(b, b.streams);
    const readers = [w.CHAT, w.DM].map((stream) => [
      `$JS.API.CONSUMER.CREATE.${stream}`,
      consumers(stream, ["CREATE", "INFO", "MSG.NEXT"]),
      `$JS.ACK.${stream}.>`,
    ]);
    return {
      publish: [
        info(w.CHAT, w.DM, w.PRES, w.CHAN, w.MEM, w.LEASE),
        readers,
        w.watch("PRES", "CHAN", "MEM"),
        get(w.CHAN, w.MEM, w.LEASE),
        "$JS.FC.>",
        requests(w, "admin"),
        w.DESC,
      ],
      subscribe: [`${w.P}.chat.>`, `${w.P}.inst.>`, `${w.P}.svc.>`],
    };
  },
});

/** The holder's half of one session. */
export const sessionCaller = profile({
  name: "session-caller",
  kind: "view",
  bindings: { endpoint: EndpointLabel.schema, sessionId: SessionId.schema, epoch: SafeInteger() },
  rows(b) {
    const w = words(b);
    const session = `${w.P}.eps.${b.endpoint}.${b.sessionId}.${b.epoch}`;
    return { publish: [`${session}.in`, requests(w, "session-holder")], subscribe: `${session}.out` };
  },
});

/** Puts one object of known content, named by its hash, into a manager's transfer bucket. */
export const transferWriter = profile({
  name: "transfer-writer",
  kind: "view",
  bindings: { instanceId: Uid.schema, hex: Hex64.schema },
  rows(b) {
    const bucket = `cotal_xfer_${b.space}_${b.instanceId}`;
    const name = Buffer.from(b.hex).toString("base64url");
    const subjects = [`$O.${bucket}.C.${b.hex}`, `$O.${bucket}.M.${name}`];
    return { publish: [subjects, each(subjects, (subject) => dget(`OBJ_${bucket}`, subject))] };
  },
});

export const channelWriter = profile({
  name: "channel-writer",
  kind: "view",
  bindings: {},
  rows(b) {
    const { kv, CHAN } = words(b);
    return { publish: [kv("channels", ">"), info(CHAN), get(CHAN)] };
  },
});

const purge = (...streams: string[]) => [each(streams, (stream) => `$JS.API.STREAM.PURGE.${stream}`), info(...streams)];

export const channelPurger = profile({
  name: "channel-purger",
  kind: "view",
  bindings: {},
  rows: (b) => ({ publish: purge(words(b).CHAT) }),
});

export const purger = profile({
  name: "purger",
  kind: "view",
  bindings: {},
  rows(b) {
    const { CHAT, DM, TASK } = words(b);
    return { publish: purge(CHAT, DM, TASK) };
  },
});

/** Manages the person's own agents through whichever manager serves them. */
export const deployer = profile({
  name: "deployer",
  kind: "view",
  bindings: {},
  rows(b) {
    const { P, T, DESC, ART, RE } = words(b);
    return {
      publish: [each(MANAGER.owner, (command) => `${P}.ep.one.manager.${command}.owner.${b.owner}.${T}.*`), DESC, ART],
      subscribe: RE,
    };
  },
});
