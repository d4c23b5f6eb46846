/** The operations of `custodian` (lifecycles §2). */
import { connectionLiveness } from "./custodian/connection-liveness.ts";
import { custodianDescribe } from "./custodian/describe.ts";
import { evictPrincipals } from "./custodian/evict-principals.ts";
import { principalLiveness } from "./custodian/principal-liveness.ts";
import { contractSet } from "./operation.ts";

export const custodianOperations = [evictPrincipals, principalLiveness, connectionLiveness, custodianDescribe] as const;

export const custodianContracts = contractSet("ai.cotal.custodian", custodianOperations);
