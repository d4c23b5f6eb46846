/** The operations of `exchange` (identity §8). */
import { exchangeDescribe } from "./exchange/describe.ts";
import { discovery } from "./exchange/discovery.ts";
import { exchangeAgent } from "./exchange/exchange-agent.ts";
import { exchangeUser } from "./exchange/exchange-user.ts";
import { identify } from "./exchange/identify.ts";
import { jwks } from "./exchange/jwks.ts";
import { contractSet } from "./operation.ts";

export const exchangeOperations = [exchangeUser, exchangeAgent, identify, jwks, discovery, exchangeDescribe] as const;

export const exchangeContracts = contractSet("ai.cotal.exchange", exchangeOperations);
