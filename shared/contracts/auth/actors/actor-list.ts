import Type from "typebox";
import { ARGUMENT } from "../../../limits.ts";
import { Owner, RequestId } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { ActorKey, ActorKind, ActorRow } from "./actor-row.ts";

export const actorList = operation({
  service: "auth",
  name: "actor-list",
  summary: "Lists actors by key, in pages",
  effect: "read",
  input: Closed({
    requestId: RequestId.schema,
    owner: Type.Optional(Owner.schema),
    kind: Type.Optional(ActorKind),
    /** The last key of the page before. */
    after: Type.Optional(ActorKey),
  }),
  output: Closed({
    requestId: RequestId.schema,
    actors: Type.Array(ActorRow, { maxItems: ARGUMENT.page }),
    /** The last key of this page, where another follows. */
    next: Type.Optional(ActorKey),
  }),
  callers: ["operator", "admin"],
  errors: ["permission-denied"],
  example: { requestId: EXAMPLE.requestId, owner: EXAMPLE.owner, kind: "managed" },
});
