import Type from "typebox";
import { SafeInteger } from "../../envelope.ts";
import { MODE_TARGETS, type Mode } from "../../subjects.ts";
import { Command, EndpointLabel, type Owner, Uid } from "../../tokens.ts";
import { profile } from "./profile.ts";
import { bind, isSpacesOwn, words } from "./words.ts";

const MODES = Object.keys(MODE_TARGETS) as Mode[];

/** What counts here of one command of the registered serve surface. */
interface ServedCommand {
  readonly name: string;
  readonly modes: readonly Mode[];
}
const Surface = Type.Unsafe<readonly ServedCommand[]>(
  Type.Array(Type.Object({ name: Command.schema, modes: Type.Array(Type.Enum(MODES), { uniqueItems: true }) })),
);

/** Reserved, so no declaration lists it; everybody serves it. */
const DESCRIBE: ServedCommand = { name: "describe", modes: [] };

/** What comes in on the class rail: of a person's endpoint only what is aimed at that person. */
const forms = (owner: Owner, { name, modes }: ServedCommand): string[] =>
  isSpacesOwn(owner) ? [`${name}.>`] : modes.map((mode) => `${name}.${mode}.${owner}.>`);

/**
 * Serves one endpoint instance at one epoch. The space's own takes the whole class rail, in its queue only; a person's
 * takes there what is aimed at that person, in the modes that the command declares.
 */
export const endpointServe = profile({
  name: "endpoint-serve",
  kind: "standing",
  bindings: {
    endpoint: EndpointLabel.schema,
    instanceId: Uid.schema,
    epoch: SafeInteger(),
    commands: Surface,
    pools: Type.Unsafe<readonly Command[]>(Type.Array(Command.schema)),
  },
  rows(b) {
    const { P, EPF, EPW } = words(b);
    const self = `${b.endpoint}.${b.instanceId}.${b.epoch}`;
    const rails = [`${P}.ep`, `${P}.ep.v1`];
    return {
      publish: [
        `${P}.ep.reply.${self}.*.*.*.*`,
        `${P}.ep.v1.reply.${self}.*.*.*.*.*`,
        `${P}.epe.${self}.>`,
        `${P}.ept.${self}.*.schedule`,
        `${P}.epr.${self}.svc.${b.endpoint}.${b.instanceId}`,
        bind(EPF, `eff_${b.endpoint}`),
        b.pools.map((pool) => bind(EPW, `pool_${b.endpoint}_${pool}`)),
      ],
      subscribe: [
        rails.map((rail) =>
          [...b.commands, DESCRIBE].map((command) => [
            `${rail}.inst.${b.endpoint}.${b.instanceId}.${command.name}.>`,
            forms(b.owner, command).map((form) => [
              `${rail}.one.${b.endpoint}.${form} ${b.endpoint}`,
              `${rail}.all.${b.endpoint}.${form}`,
            ]),
          ]),
        ),
        `${P}.ept.${self}.*.fire`,
      ],
    };
  },
});
