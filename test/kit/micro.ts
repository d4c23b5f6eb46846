/** What micro-services say of themselves on `$SRV`, held to the shapes of ADR-32. */
import type { NatsConnection } from "@nats-io/transport-node";
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";

const Name = Type.String({ pattern: "^[a-zA-Z0-9_-]+$" });
const Metadata = Type.Record(Type.String(), Type.String());
const Whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const closed = { additionalProperties: false } as const;
const identity = {
  name: Name,
  id: Name,
  version: Type.String({ pattern: "^\\d+\\.\\d+\\.\\d+(-[0-9A-Za-z.-]+)?(\\+[0-9A-Za-z.-]+)?$" }),
  metadata: Metadata,
};
const endpoint = { name: Name, subject: Type.String({ minLength: 1 }), queue_group: Type.String() };

export const Ping = Type.Object({ ...identity, type: Type.Literal("io.nats.micro.v1.ping_response") }, closed);
export const Info = Type.Object(
  {
    ...identity,
    type: Type.Literal("io.nats.micro.v1.info_response"),
    description: Type.String(),
    endpoints: Type.Array(Type.Object({ ...endpoint, metadata: Metadata }, closed)),
  },
  closed,
);
export const Stats = Type.Object(
  {
    ...identity,
    type: Type.Literal("io.nats.micro.v1.stats_response"),
    started: Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$" }),
    endpoints: Type.Array(
      Type.Object(
        {
          ...endpoint,
          num_requests: Whole,
          num_errors: Whole,
          last_error: Type.Optional(Type.String()),
          processing_time: Whole,
          average_processing_time: Whole,
          data: Type.Object(
            {
              inFlight: Whole,
              dropped: Type.Object({ subject: Whole, "broker-made": Whole, "reply-not-inbox": Whole }, closed),
              codes: Type.Record(Type.String(), Whole),
            },
            closed,
          ),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type Stats = Static<typeof Stats>;
export type EndpointStats = Stats["endpoints"][number];

const checks = { PING: Compile(Ping), INFO: Compile(Info), STATS: Compile(Stats) };
interface Answers {
  readonly PING: Static<typeof Ping>;
  readonly INFO: Static<typeof Info>;
  readonly STATS: Stats;
}

/** Asks `$SRV.<verb>[.<name>[.<id>]]` for one answer. Throws where it breaks its schema. */
export async function discover<V extends keyof Answers>(
  connection: NatsConnection,
  verb: V,
  ...of: string[]
): Promise<Answers[V]> {
  const message = await connection.request(["$SRV", verb, ...of].join("."), "", { timeout: 5_000 });
  return shaped(verb, message.json());
}

/** The answer, if it fits its schema. */
export function shaped<V extends keyof Answers>(verb: V, answer: unknown): Answers[V] {
  const check = checks[verb] as { Check(value: unknown): boolean; Errors(value: unknown): unknown };
  if (!check.Check(answer)) throw new Error(`${verb}: ${JSON.stringify(check.Errors(answer))}`);
  return answer as Answers[V];
}

/** Counters of one service by endpoint. */
export async function statistics(connection: NatsConnection, service: string): Promise<Map<string, EndpointStats>> {
  const { endpoints } = await discover(connection, "STATS", service);
  return new Map(endpoints.map((one) => [one.name, one]));
}
