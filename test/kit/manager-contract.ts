/** What a small manager serves: the run commands that the authority observes, and one aimed at its owner. */

import Type from "typebox";
import { artifactOf, Closed } from "../../shared/contracts/operation.ts";
import { type RegisteredCommand, readManagerArtifacts } from "../../shared/contracts/profile.ts";

const text = (maxLength = 256) => Type.String({ maxLength });
const Void = Type.Null();
const run = Closed({ runId: text() });
const answer = Closed({
  runId: text(),
  stepKey: text(1_024),
  endpoint: Type.Optional(text()),
  amend: Type.Optional(Type.Boolean()),
});

interface Declared {
  readonly name: string;
  readonly input: object;
  readonly mode?: "self" | "owner";
  readonly effect?: "read";
}
const COMMANDS: readonly Declared[] = [
  { name: "run-answer", input: answer, mode: "self" },
  { name: "run-resume", input: run },
  { name: "run-start", input: run },
  { name: "spawn", input: Closed({ actor: text() }), mode: "owner" },
  { name: "status", input: Void, effect: "read" },
];

/** Artifacts as a manager sends them, and what the authority makes of them. */
export class ManagerContract {
  readonly documents: readonly object[];
  readonly registered;

  /** `revision` tells one version's digests from another's. */
  constructor(revision = 1) {
    const plain = (schema: object): object => JSON.parse(JSON.stringify(schema));
    const cluster = {
      urn: "ai.cotal.manager",
      revision,
      attributes: [],
      commands: COMMANDS.map(({ name, input, mode, effect = "write" }) => ({
        name,
        input: { $ref: artifactOf(input).digest },
        output: { $ref: artifactOf(Void).digest },
        class: "ephemeral",
        targeted: mode !== undefined,
        modes: mode === undefined ? [] : [mode],
        capability: `manager.${name}`,
        effect,
        traits: [],
      })),
      events: [],
    };
    const schemas = new Map(
      [...COMMANDS.map(({ input }) => input), Void].map((schema) => [artifactOf(schema).digest, schema]),
    );
    this.documents = [cluster, ...[...schemas.values()].map(plain)];
    this.registered = readManagerArtifacts(this.documents);
  }

  pair(command: string): Pick<RegisteredCommand, "inputDigest" | "outputDigest"> {
    const found = this.registered.commands.find(({ name }) => name === command);
    if (!found) throw new Error(`this manager has no ${command}`);
    return found;
  }
}
