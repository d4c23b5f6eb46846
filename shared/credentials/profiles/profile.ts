/** What one row of the permission matrix is: typed bindings in, subjects out (state §6). */
import Type, { type Static, type TObject, type TProperties } from "typebox";
import { Compile } from "typebox/compile";
import { internal } from "../../errors.ts";
import { Actor, Nonce, Owner, Space, Uid, UserNkey } from "../../tokens.ts";

/**
 * `view` signed by the callout, ends with its bearer; `standing` renewed at 75 % of its life; `one-shot` never renewed;
 * `provisioned` made by `init`; `self` signed by a service for its own connections.
 */
export type ProfileKind = "view" | "standing" | "one-shot" | "provisioned" | "self";

/** Lists in lists, so that a row reads like the chapter. */
export type Subjects = string | readonly Subjects[];

export interface Rows {
  readonly publish: Subjects;
  /** Beside the holder's own inbox, which everyone has. A queue stands after a blank. */
  readonly subscribe?: Subjects;
  readonly denyPublish?: Subjects;
  /** May answer each request at its reply subject, once. */
  readonly answers?: true;
}

/** Whose connection it is. `inbox` is its nkey; of one admitted by the callout, its nonce. */
const HOLDER = {
  space: Space.schema,
  owner: Owner.schema,
  actor: Actor.schema,
  uid: Uid.schema,
  inbox: Type.Union([UserNkey.schema, Nonce.schema]),
};
const holderSchema = Type.Object(HOLDER);
export type Holder = Static<typeof holderSchema>;

/** A stream that a space may name itself. */
const StreamSetting = Type.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" });
/** `streams` of the space's settings: where the mesh keeps deliveries and delivery leases (identity §1.2). */
export const MeshStreams = Type.Object(
  { delivery: Type.Optional(StreamSetting), lease: Type.Optional(StreamSetting) },
  { additionalProperties: false },
);
export type MeshStreams = Static<typeof MeshStreams>;

export interface Profile<B> {
  /** The name in the JWT, but for views: those carry the principal's dash form. */
  readonly name: string;
  readonly kind: ProfileKind;
  /** Missing, surplus or malformed bindings are `internal`: no wildcard comes in by a value. */
  rows(bindings: B): Rows;
}

export function profile<const P extends TProperties>(declared: {
  readonly name: string;
  readonly kind: ProfileKind;
  readonly bindings: P;
  readonly rows: (bindings: Static<TObject<typeof HOLDER & P>>) => Rows;
}): Profile<Static<TObject<typeof HOLDER & P>>> {
  const check = Compile(Type.Object({ ...HOLDER, ...declared.bindings }, { additionalProperties: false }));
  return Object.freeze({
    name: declared.name,
    kind: declared.kind,
    rows(bindings: Static<TObject<typeof HOLDER & P>>) {
      if (check.Check(bindings)) return declared.rows(bindings);
      const where = [...check.Errors(bindings)].map((error) => `${error.instancePath} ${error.message}`);
      throw internal(`bindings of profile ${declared.name}: ${where.slice(0, 4).join("; ")}`);
    },
  });
}
