import { WIRE } from "../../limits.ts";
import { Owner } from "../../tokens.ts";
import { Closed, operation } from "../operation.ts";
import { Seconds, Text } from "../shapes.ts";

export const identify = operation({
  service: "exchange",
  name: "identify",
  summary: "Tells the authority which person a login proves",
  effect: "read",
  input: Closed({ idpToken: Text(WIRE.maxAuth) }),
  output: Closed({ owner: Owner.schema, exp: Seconds }),
  callers: ["authority"],
  errors: ["unauthenticated", "permission-denied", "unavailable"],
  example: { idpToken: "<the identity provider's token>" },
});
