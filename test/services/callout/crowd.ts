/** Many clients of one space, connecting at once. */
import type { NatsConnection } from "@nats-io/transport-node";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { freshNonce, grant, install } from "./people.ts";
import type { TestSpace } from "./space.ts";

export interface Crowd {
  /** Connects that many, so many at a time, and closes them again; what went wrong is returned. */
  connect(count: number, atOnce: number): Promise<unknown[]>;
}

/** Twenty people, whose bearers the clients use in turn. */
export async function crowdOf(at: TestSpace): Promise<Crowd> {
  const people = Array.from({ length: 20 }, () => grant({ actor: `cli_${newUid(systemPorts)}` }));
  const tokens = await Promise.all(people.map(async (who) => at.bearers.bearer(await install(at, who))));
  return {
    async connect(count, atOnce) {
      const errors: unknown[] = [];
      const open: NatsConnection[] = [];
      let next = 0;
      const worker = async () => {
        while (next < count) {
          const token = tokens[next++ % tokens.length] ?? "";
          await at.connect(token, freshNonce()).then(
            (connection) => open.push(connection),
            (error) => errors.push(error),
          );
        }
      };
      await Promise.all(Array.from({ length: atOnce }, worker));
      await Promise.all(open.map((connection) => connection.close()));
      return errors;
    },
  };
}
