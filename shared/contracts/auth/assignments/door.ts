/** A door embeds the request of another operation (operations §11). */
import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { AccountNkey, Space } from "../../../tokens.ts";
import { EXAMPLE, exampleEnvelope } from "../../example.ts";
import type { Operation } from "../../operation.ts";
import { SERVICE_AUTHORITY } from "../manager-envelope.ts";

export const door = <K extends string>(kind: K) => ({
  v: Type.Literal(1),
  kind: Type.Literal(kind),
  space: Space.schema,
  accountPublicKey: AccountNkey.schema,
  assignmentRevision: SafeInteger(1),
  /** Judged by the input schema of the operation it names; what it may name has refusals of its own. */
  request: Type.Unknown(),
});

/** The result of any of the operations behind a door. */
export const resultOf = (inner: readonly Operation[]) =>
  Type.Unsafe<unknown>(Type.Union(inner.map(({ output }) => output)));

export const exampleDoor = (kind: string) => ({
  v: 1,
  kind,
  space: EXAMPLE.space,
  accountPublicKey: EXAMPLE.account,
  assignmentRevision: 1,
  request: exampleEnvelope(SERVICE_AUTHORITY, "prepare"),
});
