/** Schemas of the members that many rows share (state §3). */
import Type, { type TObject, type TProperties } from "typebox";
import { Actor, Owner, Uid } from "../tokens.ts";

/** An object with exactly these members: what no chapter names is corruption. */
export const closed = <P extends TProperties>(members: P): TObject<P> =>
  Type.Object(members, { additionalProperties: false });

/** An object with at least these members: others may add to what they write (records §1). */
export const open = <P extends TProperties>(members: P): TObject<P> => Type.Object(members);

/** One of these literals. */
export const oneOf = <const L extends readonly string[]>(...literals: L) =>
  Type.Unsafe<L[number]>({ type: "string", enum: [...literals] });

/** A counter, revision, epoch or generation of a gate. */
export const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** Unix milliseconds. */
export const Ms = Count;

/** Text that nothing here takes apart. */
export const Text = Type.String({ maxLength: 4_096 });

/** One incarnation of a principal. */
export const Lifecycle = { owner: Owner.schema, actor: Actor.schema, lifecycleUid: Uid.schema };

/** On whose behalf a credential was issued: that row is re-read later. */
export const GrantedBy = Type.Union([
  closed({ kind: Type.Literal("actor"), ...Lifecycle }),
  closed({ kind: Type.Literal("assignment"), instanceId: Uid.schema, assignmentRevision: Count }),
]);
export type GrantedBy = Type.Static<typeof GrantedBy>;

/** The operation that holds a frozen gate or ended a retired one; `takeover` is parsed, never written here. */
export const Op = closed({ opId: Uid.schema, kind: oneOf("registration", "retirement", "takeover") });
export type Op = Type.Static<typeof Op>;
