/** Every declared operation of every service. */
import { authOperations } from "../../../shared/contracts/auth.ts";
import { custodianOperations } from "../../../shared/contracts/custodian.ts";
import { exchangeOperations } from "../../../shared/contracts/exchange.ts";
import type { Operation } from "../../../shared/contracts/operation.ts";

export const everyOperation: readonly Operation[] = [...authOperations, ...exchangeOperations, ...custodianOperations];

export const named = everyOperation.map((operation) => [operation.capability, operation] as const);
