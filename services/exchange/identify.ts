/** Whose an identity provider's token is, for the authority's own requests (identity §8). */
import { identify } from "../../shared/contracts/exchange/identify.ts";
import { endpoint } from "../host/handler.ts";
import type { ExchangeDeps } from "./deps.ts";
import { personOwner } from "./owner.ts";

export const identifyEndpoint = ({ idp, trust }: ExchangeDeps) =>
  endpoint(identify, async ({ args, note }) => {
    const { issuer, subject, exp } = await idp.verify(args.idpToken);
    const owner = personOwner(trust.ownerSecret, issuer, subject);
    note({ owner });
    return { owner, exp };
  });
