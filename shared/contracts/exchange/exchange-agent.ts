import Type from "typebox";
import { SafeInteger } from "../../envelope.ts";
import { ARGUMENT, LIFE } from "../../limits.ts";
import { Actor, Owner, Uid } from "../../tokens.ts";
import { ViewSchema } from "../../views.ts";
import { EXAMPLE } from "../example.ts";
import { Closed, operation } from "../operation.ts";
import { Text } from "../shapes.ts";
import { BearerReply } from "./reply.ts";

export const exchangeAgent = operation({
  service: "exchange",
  name: "exchange-agent",
  summary: "Gives an agent a bearer for its own secret",
  effect: "read",
  input: Closed({
    owner: Owner.schema,
    actor: Actor.schema,
    actorToken: Text(ARGUMENT.actorToken),
    view: Type.Optional(ViewSchema),
    ttlSec: Type.Optional(SafeInteger(LIFE.minLeftS)),
    managerInstanceId: Type.Optional(Uid.schema),
  }),
  output: BearerReply,
  callers: ["gateway"],
  errors: ["unauthenticated", "permission-denied", "not-found", "failed-precondition", "expired", "unimplemented"],
  example: { owner: EXAMPLE.owner, actor: "coder", actorToken: "<the agent's secret>" },
});
