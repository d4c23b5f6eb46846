import Type from "typebox";
import { ARGUMENT, IDP } from "../../limits.ts";
import { Space } from "../../tokens.ts";
import { Closed, operation } from "../operation.ts";
import { Text } from "../shapes.ts";

const Url = Text(ARGUMENT.url);

const Pin = Closed({
  url: Url,
  issuer: Url,
  audience: Text(ARGUMENT.url),
  jwksUri: Type.Optional(Url),
});

/** Composed from settings alone (identity §10). */
export const discovery = operation({
  service: "exchange",
  name: "discovery",
  summary: "Says how to reach and enter the space",
  effect: "read",
  input: Closed({}),
  output: Closed({
    space: Space.schema,
    server: Url,
    tlsRequired: Type.Boolean(),
    /** A deny-all user of the callout account: public by design. */
    sentinelCreds: Text(ARGUMENT.sentinelCreds),
    userAuth: Closed({
      provider: Type.Literal("cotal"),
      /** The first of them. */
      idp: Pin,
      /** All, when there are several. */
      idps: Type.Optional(Type.Array(Pin, { minItems: 2, maxItems: IDP.maxPins })),
      endpoints: Closed({ url: Url, managerAuthorityUrl: Url, agentProvisioningUrl: Type.Optional(Url) }),
    }),
    policy: Type.Optional(Closed({ events: Type.Literal("required") })),
  }),
  callers: ["gateway"],
  errors: ["permission-denied", "unavailable"],
  example: {},
});
