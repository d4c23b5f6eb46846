import { principalLiveness } from "../../shared/contracts/custodian/principal-liveness.ts";
import { type Endpoint, endpoint } from "../host/handler.ts";
import type { Custodian } from "./custodian.ts";

export const principalLivenessEndpoint = (custodian: Custodian): Endpoint =>
  endpoint(principalLiveness, async ({ args, work, note }) => {
    const liveness = await custodian.principalLiveness(args.principal, work);
    note({ target: liveness.principal, state: liveness.state, sweepComplete: liveness.sweepComplete });
    return liveness;
  });
