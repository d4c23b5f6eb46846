/** `uid.<u>`: a lifecycle uid, reserved once and for ever (state §3). */
import { Actor, Owner, Principal, Uid } from "../tokens.ts";
import { family } from "./family.ts";
import { closed } from "./members.ts";

const UidRow = closed({ owner: Owner.schema, actor: Actor.schema, mintedBy: Principal.schema });

export const uidRows = family({
  stream: "auth",
  pattern: "uid.{uid}",
  parts: { uid: Uid },
  schema: UidRow,
  admits: (from) => from === undefined,
});
