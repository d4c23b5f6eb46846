import Type from "typebox";
import { CONTRACT } from "../../../limits.ts";
import { Digest } from "../../../tokens.ts";
import { EXAMPLE_ARTIFACTS, exampleEnvelope, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Signed } from "../../shapes.ts";
import { ISSUING_CALLERS, material, proof, SERVICE_AUTHORITY, serviceAuthority } from "../manager-envelope.ts";

export const managerActivate = operation({
  service: "auth",
  name: "manager-activate",
  summary: "Issues the serve family of a registered manager instance",
  effect: "write",
  input: Closed({
    ...serviceAuthority("activate"),
    ...proof,
    /** Documents of the manager's own, in any order: held to the schema profile, never compiled. */
    contractArtifacts: Type.Array(Type.Unknown(), { minItems: 1, maxItems: CONTRACT.maxArtifacts }),
  }),
  output: Closed({
    ...material("activate"),
    ...proof,
    /** The current-registration proof over the gate that these credentials are fenced on. */
    nextRegistrationProof: Digest.schema,
    credentials: Closed({ serve: Signed, goalWriter: Signed, sessionLedger: Signed }),
  }),
  callers: [...ISSUING_CALLERS, "supervisor"],
  scope: "supervise",
  http: { kind: SERVICE_AUTHORITY, operation: "activate" },
  errors: ["permission-denied", "failed-precondition", "contract-invalid", "expired"],
  example: {
    ...exampleEnvelope(SERVICE_AUTHORITY, "activate"),
    ...exampleProof,
    contractArtifacts: EXAMPLE_ARTIFACTS,
  },
});
