/** Connections under credentials of a manager, as far as an eviction is concerned with them. */
import type { NatsConnection } from "@nats-io/transport-node";
import type { KeyPair } from "../../../shared/credentials/nkeys.ts";
import type { Identity } from "../../../shared/credentials/roles.ts";
import { connectUser } from "../../../shared/nats/connect.ts";
import type { TestManager } from "../../kit/manager.ts";
import type { TestSpace } from "../../kit/space.ts";

/** Closes those that the manager keeps: they come back by themselves for as long as their JWTs are good. */
export async function hangUp(manager: TestManager): Promise<void> {
  const known = Object.keys(manager.credentials) as Identity[];
  await Promise.all(known.map(async (identity) => (await manager.connection(identity)).close()));
}

/** One that a kick ends for good. */
export const connectOnce = (space: TestSpace, jwt: string, key: KeyPair): Promise<NatsConnection> =>
  connectUser({ servers: space.servers, name: "once", user: () => ({ jwt, key }), reconnect: false });

/** The same, under a credential of the manager. */
export function connectIdentity(space: TestSpace, manager: TestManager, identity: Identity): Promise<NatsConnection> {
  return connectOnce(space, manager.credentials[identity] ?? "", manager.keys[identity]);
}
