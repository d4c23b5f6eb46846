/** What `auth` and `callout` sign for their own connections. */
import Type from "typebox";
import { SafeInteger } from "../../envelope.ts";
import { Uid } from "../../tokens.ts";
import { MeshStreams, profile } from "./profile.ts";
import { commandsOf, requests } from "./requests.ts";
import { consumers, create, discovery, each, get, info, words } from "./words.ts";

const Service = Type.Enum(["auth", "callout"]);

/** The serve connection of one incarnation of `auth`, and nothing beside serving. */
export const serviceServe = profile({
  name: "service-serve",
  kind: "standing",
  bindings: { instanceId: Uid.schema, epoch: SafeInteger() },
  rows(b) {
    const { P } = words(b);
    return {
      publish: `${P}.ep.reply.auth.${b.instanceId}.${b.epoch}.*.*.*.*`,
      subscribe: [
        each(commandsOf("auth"), (command) => `${P}.ep.one.auth.${command}.> auth`),
        `${P}.ep.inst.auth.${b.instanceId}.describe.>`,
        discovery("auth"),
      ],
      answers: true,
    };
  },
});

/** The service's own work in the space account. */
export const work = profile({
  name: "work",
  kind: "self",
  bindings: { service: Service },
  rows(b) {
    const w = words(b);
    const { P, RECORDS, OBS, WFJ, EPC, EPF, EPW, EPE, ACCEPTED } = w;
    if (b.service === "callout") return { publish: [w.kv("accepted", ">"), info(ACCEPTED), get(ACCEPTED)] };
    const read = [RECORDS, OBS, WFJ, EPC, EPF];
    return {
      publish: [
        each(["svc", "oblig"], (family) => w.rec(`${family}.>`)),
        `${P}.epc.*`,
        `${P}.epf.*.dec.>`,
        `$JS.API.STREAM.MSG.DELETE.${OBS}`,
        info(...read, EPW, EPE, ACCEPTED),
        get(...read),
        create(RECORDS, OBS, EPC, ACCEPTED),
        requests(w, "authority"),
      ],
    };
  },
});

/** Row families of the ledger, one grant each, so that a stray key is refused by the broker. */
const FAMILIES = [
  "actor",
  "lifecycle",
  "uid",
  "gate",
  "epgate",
  "cred",
  "epcred",
  "session",
  "stage",
  "frontier",
  "manager",
  "bymanager",
  "assignment",
] as const;

/** The writes in the authority account, where nobody else has any. */
export const store = profile({
  name: "store",
  kind: "self",
  bindings: { service: Service },
  rows(b) {
    const { kv, AUTH, CONNECT, ADMISSION, ISSUED } = words(b);
    if (b.service === "callout") {
      return {
        publish: [kv("connect", "inbox.>"), kv("issued", ">"), info(AUTH, CONNECT, ISSUED), get(AUTH, CONNECT, ISSUED)],
      };
    }
    const all = [AUTH, CONNECT, ADMISSION, ISSUED];
    return {
      publish: [
        each(FAMILIES, (family) => kv("auth", `${family}.>`)),
        kv("auth", "plane"),
        kv("admission", ">"),
        info(...all),
        get(AUTH, ADMISSION, ISSUED),
        create(...all),
      ],
    };
  },
});

/** Consumers for scans and watches; in the authority account also the connection of the plane claim. */
export const scan = profile({
  name: "scan",
  kind: "self",
  bindings: { account: Type.Enum(["authority", "space"]), streams: Type.Optional(MeshStreams) },
  rows(b) {
    const { AUTH, RECORDS, DM, DLV, TASK } = words(b, b.streams);
    const streams = b.account === "authority" ? [AUTH] : [RECORDS, DM, DLV, TASK];
    const use = ["CREATE", "INFO", "MSG.NEXT"];
    return {
      publish: [
        info(...streams),
        // What a role's members share on TASK is never removed.
        streams.map((stream) => consumers(stream, stream === TASK ? use : [...use, "DELETE"])),
      ],
    };
  },
});
