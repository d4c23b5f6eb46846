/** What a client needs to know before its first login, from settings alone (identity §10). */
import type { Static } from "typebox";
import { baseUrl } from "../../shared/base-url.ts";
import { discovery } from "../../shared/contracts/exchange/discovery.ts";
import { unavailable } from "../../shared/errors.ts";
import type { IdpPin } from "../../shared/secrets/pins.ts";
import type { SpaceSettings } from "../../shared/secrets/settings.ts";
import { endpoint } from "../host/handler.ts";
import type { ExchangeDeps } from "./deps.ts";

export type Bundle = Static<typeof discovery.output>;

export const discoveryEndpoint = ({ bundle }: ExchangeDeps) =>
  endpoint(discovery, async () => {
    if (!bundle) throw unavailable("no publicUrl is configured");
    return bundle;
  });

/** Nothing without a public URL: there is nowhere to send a client. */
export function bundleOf(settings: SpaceSettings, pins: readonly IdpPin[], sentinelCreds: string): Bundle | undefined {
  const { space, broker, gateway, agentProvisioningUrl, policy } = settings;
  const [first, ...more] = pins.map(publicPin);
  if (gateway.publicUrl === undefined || first === undefined) return undefined;
  const url = baseUrl(gateway.publicUrl);
  return {
    space,
    server: broker.advertised,
    tlsRequired: broker.tlsRequired,
    sentinelCreds,
    userAuth: {
      provider: "cotal",
      idp: first,
      ...(more.length > 0 ? { idps: [first, ...more] } : {}),
      endpoints: {
        url,
        managerAuthorityUrl: `${url}/manager-service-authority`,
        ...(agentProvisioningUrl === undefined ? {} : { agentProvisioningUrl }),
      },
    },
    ...(policy ? { policy } : {}),
  };
}

/** Which algorithms and keys we believe is nobody's business but ours. */
const publicPin = ({ url, issuer, audience, jwksUri }: IdpPin) => ({
  url,
  issuer,
  audience,
  ...(jwksUri === undefined ? {} : { jwksUri }),
});
