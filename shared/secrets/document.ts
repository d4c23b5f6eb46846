/** JSON files with a closed schema: what is unknown or malformed refuses, and nothing is repaired (identity §1.3). */
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { parseStrict } from "../canonical.ts";
import { AuthorityError, isAuthorityError, textOf } from "../errors.ts";
import { SECRETS } from "../limits.ts";

export interface Document<V> {
  /** `location` is the key or path that a refusal names. */
  decode(location: string, bytes: Uint8Array): V;
  encode(value: V): Uint8Array;
}

/** `check` says what is wrong with a value of the right shape, as a text that quotes nothing of it. */
export function document<const S extends TSchema>(
  schema: S,
  check: (value: Static<S>) => string | undefined = () => undefined,
): Document<Static<S>> {
  const shape = Compile(schema);
  const faultOf = (value: unknown): string | undefined => {
    if (shape.Check(value)) return check(value);
    const [error] = shape.Errors(value);
    return `${error?.instancePath || "/"} ${error?.message ?? "does not fit"}`;
  };
  return {
    decode(location, bytes) {
      let value: unknown;
      try {
        value = parseStrict(bytes, { maxBytes: SECRETS.maxBytes, maxDepth: SECRETS.maxDepth });
      } catch (cause) {
        throw refused(location, isAuthorityError(cause) ? cause.message : textOf(cause));
      }
      const fault = faultOf(value);
      if (fault !== undefined) throw refused(location, fault);
      return value as Static<S>;
    },
    encode(value) {
      const fault = faultOf(value);
      if (fault !== undefined) throw refused("a file to be written", fault);
      return new TextEncoder().encode(`${JSON.stringify(value, undefined, 2)}\n`);
    },
  };
}

/** The refusal of a start: the location is for the operator, who reads the reason; no caller does. */
export function refused(location: string, fault: string, cause?: unknown): AuthorityError {
  return new AuthorityError("failed-precondition", "the state refuses the start", {
    reason: `${location}: ${fault}`,
    cause,
  });
}
