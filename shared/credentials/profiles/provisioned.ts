/** The users that `init` provisions (identity §1.1). */
import Type from "typebox";
import { profile } from "./profile.ts";
import { commandsOf, requests, routed } from "./requests.ts";
import { discovery, each, get, info, words } from "./words.ts";

/** Forwards what came over HTTP; both faces have the same routes to operations. */
export const gateway = profile({
  name: "gateway",
  kind: "provisioned",
  bindings: {},
  rows: (b) => ({ publish: routed(words(b)) }),
});

/** What `nats micro` publishes, and the shared inbox on which that tool listens. */
const MICRO = {
  publish: ["PING", "INFO", "STATS"].map((verb) => [`$SRV.${verb}`, `$SRV.${verb}.>`]),
  subscribe: "_INBOX.>",
} as const;

export const operator = profile({
  name: "operator",
  kind: "provisioned",
  bindings: {},
  rows(b) {
    const w = words(b);
    return { publish: [requests(w, "operator"), w.DESC, w.ART, MICRO.publish], subscribe: MICRO.subscribe };
  },
});

/** Sees the callout service, in its own account. */
export const operatorCallout = profile({
  name: "operator-callout",
  kind: "provisioned",
  bindings: {},
  rows: () => MICRO,
});

/** The host of platform managers, for the two doors only. */
export const platformHost = profile({
  name: "platform-host",
  kind: "provisioned",
  bindings: {},
  rows(b) {
    const w = words(b);
    return { publish: [requests(w, "host"), w.DESC] };
  },
});

/** Serves without a gate: its replicas share the one user and epoch 0. */
export const service = profile({
  name: "service",
  kind: "provisioned",
  bindings: { service: Type.Enum(["exchange", "custodian"]) },
  rows(b) {
    const { P, RECORDS } = words(b);
    return {
      publish: [
        `${P}.ep.reply.${b.service}.*.0.*.*.*.*`,
        b.service === "exchange" ? [info(RECORDS), get(RECORDS)] : [],
      ],
      subscribe: [
        each(commandsOf(b.service), (command) => `${P}.ep.one.${b.service}.${command}.> ${b.service}`),
        `${P}.ep.inst.${b.service}.*.describe.>`,
        discovery(b.service),
      ],
      answers: true,
    };
  },
});

/** Reads the ledger, writes the trust row; authority account. */
export const exchangeStore = profile({
  name: "exchange-store",
  kind: "provisioned",
  bindings: {},
  rows(b) {
    const { AUTH, CONNECT, kv } = words(b);
    return { publish: [info(AUTH, CONNECT), get(AUTH, CONNECT), kv("connect", "trust")] };
  },
});

/** Finds and ends connections; system account. */
export const custodianSystem = profile({
  name: "custodian-system",
  kind: "provisioned",
  bindings: {},
  rows: () => ({
    publish: [
      each(["STATSZ", "VARZ"], (report) => `$SYS.REQ.SERVER.PING.${report}`),
      each(["CONNZ", "KICK"], (verb) => `$SYS.REQ.SERVER.*.${verb}`),
    ],
  }),
});

/** Where the broker asks, and in which queue every replica of the callout takes its share (identity §9.1). */
export const CALLOUT_SUBJECT = "$SYS.REQ.USER.AUTH";
export const CALLOUT_QUEUE = "cotal-auth-callout";

/** Answers the broker; callout account. */
export const callout = profile({
  name: "callout",
  kind: "provisioned",
  bindings: {},
  rows: () => ({
    publish: ["$SYS._INBOX.>", "_INBOX.>"],
    subscribe: [`${CALLOUT_SUBJECT} ${CALLOUT_QUEUE}`, discovery("callout")],
  }),
});
