/** The operator's own connection, on the user that `init` made for it. */
import type { NatsConnection } from "@nats-io/nats-core";
import { AuthorityClient } from "../../shared/client.ts";
import { connectAs } from "../cli/operator.ts";
import type { TourEnv } from "./tour.ts";

export interface Operator {
  readonly connection: NatsConnection;
  readonly client: AuthorityClient;
}

export async function operatorOf({ space, stateDir, servers, ports }: TourEnv): Promise<Operator> {
  const as = await connectAs({ state: stateDir, space, servers, json: false }, "operator");
  return { connection: as.connection, client: new AuthorityClient({ ...as, name: "tour", ports }) };
}
