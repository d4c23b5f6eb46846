import Type from "typebox";
import { SafeInteger } from "../../envelope.ts";
import { ARGUMENT, LIFE } from "../../limits.ts";
import { Actor, EndpointLabel, Hex64, SessionId, Uid } from "../../tokens.ts";
import { ViewSchema } from "../../views.ts";
import { Closed, operation } from "../operation.ts";
import { Text } from "../shapes.ts";
import { BearerReply } from "./reply.ts";

/** What a view pairs with is checked by the exchange, not by the schema (identity §8). */
export const exchangeUser = operation({
  service: "exchange",
  name: "exchange-user",
  summary: "Gives a person a bearer for a login at the identity provider",
  effect: "read",
  input: Closed({
    actor: Actor.schema,
    view: Type.Optional(ViewSchema),
    ttlSec: Type.Optional(SafeInteger(LIFE.minLeftS)),
    managerInstanceId: Type.Optional(Uid.schema),
    /** Selects a session that a manager has opened. */
    sessionGrant: Type.Optional(
      Closed({
        endpoint: EndpointLabel.schema,
        sessionId: SessionId.schema,
        epoch: SafeInteger(),
        grantSig: Text(ARGUMENT.grantSig),
      }),
    ),
    transferWriter: Type.Optional(Closed({ instanceId: Uid.schema, hex: Hex64.schema })),
  }),
  output: BearerReply,
  callers: ["gateway"],
  auth: true,
  errors: [
    "unauthenticated",
    "permission-denied",
    "not-found",
    "failed-precondition",
    "expired",
    "unimplemented",
    "unavailable",
  ],
  example: { actor: "cli", view: "manager-caller", ttlSec: 600 },
});
