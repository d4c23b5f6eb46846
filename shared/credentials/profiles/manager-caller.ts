import Type from "typebox";
import { Generation, Uid } from "../../tokens.ts";
import { MANAGER } from "./commands.ts";
import { profile } from "./profile.ts";
import { dget, each, words } from "./words.ts";

/** The name under which one connection finds its accepted authority (state §7). */
const AcceptedToken = Type.String({ pattern: "^[0-9a-f]{32}$" });

/** Asks one manager instance. An issued connection publishes on the v1 rail alone, under its generation. */
export const managerCaller = profile({
  name: "manager-caller",
  kind: "view",
  bindings: {
    instanceId: Uid.schema,
    issued: Type.Optional(
      Type.Object({ generation: Generation.schema, token: AcceptedToken }, { additionalProperties: false }),
    ),
  },
  rows(b) {
    const { P, T, kv, ART, RE, ACCEPTED } = words(b);
    const rail = b.issued ? "ep.v1" : "ep";
    const caller = b.issued ? `${T}.${b.issued.generation}` : T;
    const ask = (form: string): string => `${P}.${rail}.inst.manager.${b.instanceId}.${form}.${caller}.*`;
    return {
      publish: [
        each([...MANAGER.untargeted, "describe"], ask),
        each(MANAGER.self, (command) => ask(`${command}.self`)),
        each(MANAGER.owner, (command) => ask(`${command}.owner.${b.owner}`)),
        ART,
        b.issued ? dget(ACCEPTED, kv("accepted", `accepted.v1.${b.issued.token}`)) : [],
      ],
      subscribe: [
        RE,
        b.issued ? `${P}.ep.v1.reply.*.*.*.${caller}.*` : [],
        `${P}.epe.manager.${b.instanceId}.*.goal.${T}.>`,
      ],
    };
  },
});
