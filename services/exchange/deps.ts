/** What the handlers of the exchange share. */
import type { Static } from "typebox";
import type { discovery } from "../../shared/contracts/exchange/discovery.ts";
import type { Space } from "../../shared/tokens.ts";
import type { IdpVerifier } from "./idp.ts";
import type { TargetDeps } from "./target.ts";
import type { TrustKeeper } from "./trust.ts";

export interface ExchangeDeps {
  readonly space: Space;
  readonly trust: Pick<TrustKeeper, "issuing" | "keys" | "ownerSecret">;
  readonly idp: Pick<IdpVerifier, "verify">;
  readonly targets: TargetDeps;
  /** Composed once from settings; absent without a public URL. */
  readonly bundle: Static<typeof discovery.output> | undefined;
}
