import Type from "typebox";
import { ISSUER } from "../../limits.ts";
import { Closed, operation } from "../operation.ts";

/** 32 bytes in unpadded base64url. */
const Key = Type.String({ pattern: "^[A-Za-z0-9_-]{43}$", maxLength: 43 });

export const jwks = operation({
  service: "exchange",
  name: "jwks",
  summary: "Publishes the keys that bearers verify under",
  effect: "read",
  input: Closed({}),
  output: Closed({
    keys: Type.Array(
      Closed({
        kty: Type.Literal("OKP"),
        crv: Type.Literal("Ed25519"),
        x: Key,
        /** The key's RFC 7638 thumbprint. */
        kid: Key,
        alg: Type.Literal("EdDSA"),
        use: Type.Literal("sig"),
      }),
      { maxItems: ISSUER.maxKeys },
    ),
  }),
  callers: ["gateway"],
  errors: ["permission-denied", "unavailable"],
  example: {},
});
