/** The bearer that both exchanges answer with. */
import Type from "typebox";
import { BEARER } from "../../limits.ts";
import { Owner, Uid } from "../../tokens.ts";
import { Closed } from "../operation.ts";
import { Seconds, Text } from "../shapes.ts";

export const BearerReply = Closed({
  token: Text(BEARER.maxToken),
  owner: Owner.schema,
  exp: Seconds,
  /** The manager that a `manager-caller` bearer is for. */
  managerInstanceId: Type.Optional(Uid.schema),
});
