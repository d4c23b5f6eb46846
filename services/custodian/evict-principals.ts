import { evictPrincipals } from "../../shared/contracts/custodian/evict-principals.ts";
import { type Endpoint, endpoint } from "../host/handler.ts";
import type { Custodian } from "./custodian.ts";

export const evictPrincipalsEndpoint = (custodian: Custodian): Endpoint =>
  endpoint(evictPrincipals, async ({ args, work, note }) => {
    const evictions = await custodian.evictPrincipals(args.principals, work);
    note({
      targets: evictions.length,
      kicked: evictions.reduce((sum, { kicked }) => sum + kicked, 0),
      verifiedGone: evictions.filter(({ verifiedGone }) => verifiedGone).length,
    });
    return { evictions };
  });
