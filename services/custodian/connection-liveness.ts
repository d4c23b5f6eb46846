import { connectionLiveness } from "../../shared/contracts/custodian/connection-liveness.ts";
import { type Endpoint, endpoint } from "../host/handler.ts";
import type { Custodian } from "./custodian.ts";

export const connectionLivenessEndpoint = (custodian: Custodian): Endpoint =>
  endpoint(connectionLiveness, async ({ args, work, note }) => {
    const liveness = await custodian.connectionLiveness(args, work);
    const { ledger, records, sweepComplete } = liveness;
    note({ ledger: ledger.state, records: records.state, sweepComplete });
    return liveness;
  });
