/** The public keys of the issuer, as every verifier may fetch them (identity §5). */
import { jwks } from "../../shared/contracts/exchange/jwks.ts";
import { endpoint } from "../host/handler.ts";
import type { ExchangeDeps } from "./deps.ts";

export const jwksEndpoint = ({ trust }: ExchangeDeps) => endpoint(jwks, async () => ({ keys: trust.keys }));
