/** Many clients of one space, connecting at once. */
import type { NatsConnection } from "@nats-io/transport-node";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { freshNonce, grant, install } from "./people.ts";
import type { TestSpace } from "./space.ts";

export interface Crowd {
  /** Connects that many, so many at a time, and closes them again; what went wrong is returned. */
  connect(count: number, atOnce: number): Promise<unknown[]>;
  /** As many, each of whom asks again until it is in; the ms that each of them took. */
  persist(count: number, atOnce: number): Promise<number[]>;
}

/** Twenty people, whose bearers the clients use in turn. */
export async function crowdOf(at: TestSpace): Promise<Crowd> {
  const people = Array.from({ length: 20 }, () => grant({ actor: `cli_${newUid(systemPorts)}` }));
  const tokens = await Promise.all(people.map(async (who) => at.bearers.bearer(await install(at, who))));
  /** The work once for each of so many, so many at a time. */
  const each = async (count: number, atOnce: number, work: (token: string) => Promise<void>): Promise<void> => {
    let next = 0;
    const worker = async () => {
      while (next < count) await work(tokens[next++ % tokens.length] ?? "");
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  };
  return {
    async connect(count, atOnce) {
      const errors: unknown[] = [];
      const open: NatsConnection[] = [];
      await each(count, atOnce, (token) =>
        at.connect(token, freshNonce()).then(
          (connection) => void open.push(connection),
          (error) => void errors.push(error),
        ),
      );
      await Promise.all(open.map((connection) => connection.close()));
      return errors;
    },
    async persist(count, atOnce) {
      const waits: number[] = [];
      const open: NatsConnection[] = [];
      await each(count, atOnce, async (token) => {
        const began = performance.now();
        for (let connection: NatsConnection | undefined; connection === undefined; ) {
          connection = await at.connect(token, freshNonce()).catch(() => undefined);
          if (connection) open.push(connection);
        }
        waits.push(performance.now() - began);
      });
      await Promise.all(open.map((connection) => connection.close()));
      return waits;
    },
  };
}
