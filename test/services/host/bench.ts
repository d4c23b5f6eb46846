/** A service of the test's own behind the real host: handlers that block, fail and write as a test wants. */
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import Type from "typebox";
import { endpoint, type Request } from "../../../services/host/handler.ts";
import type { ServingState } from "../../../services/host/road.ts";
import { type Served, serveService } from "../../../services/host/serve.ts";
import { describeOf } from "../../../shared/contracts/describe.ts";
import { Closed, contractSet, operation } from "../../../shared/contracts/operation.ts";
import { newUid, type Ports, systemPorts } from "../../../shared/ports.ts";
import { Space } from "../../../shared/tokens.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { Rail } from "../../kit/rail.ts";

const given = {
  service: "auth",
  summary: "Does what the test says",
  input: Closed({ text: Type.String({ maxLength: 64 }) }),
  output: Closed({ text: Type.String({ maxLength: 4_194_304 }) }),
  callers: ["anyone"],
  auth: true,
  example: { text: "hello" },
} as const;
export const write = operation({ ...given, name: "write", effect: "write" });
export const read = operation({ ...given, name: "read", effect: "read" });
const describe = describeOf("auth");
const contracts = contractSet("ai.cotal.test", [write, read, describe]);

export type Work = (request: Request<{ text: string }>) => Promise<unknown>;

export interface Bench {
  /** Asks, and may do anything. */
  readonly connection: NatsConnection;
  readonly broker: Broker;
  readonly rail: Rail;
  readonly served: Served;
  readonly incarnation: { readonly instanceId: string; readonly epoch: number; readonly registrationRevision: number };
  /** What was logged, in order. */
  readonly lines: readonly Record<string, unknown>[];
  /** What the handlers do from now on. */
  work: Work;
  state: ServingState;
  stop(): Promise<void>;
}

export async function startBench(ports: Ports = systemPorts): Promise<Bench> {
  const space = Space.parse("demo");
  const broker = await startBroker();
  const [asking, serving] = await Promise.all([connect({ servers: broker.url }), connect({ servers: broker.url })]);
  const lines: Record<string, unknown>[] = [];
  const rail = await Rail.open({ space, roots: { space: asking, authority: asking } });
  const incarnation = { instanceId: newUid(systemPorts), epoch: 0, registrationRevision: 0 };
  const bench: Omit<Bench, "served"> = {
    broker,
    connection: asking,
    rail,
    incarnation,
    lines,
    work: async ({ args }) => args,
    state: "ready",
    async stop() {
      await Promise.all([asking.close(), serving.close()]);
      await broker.stop();
    },
  };
  const handle = (request: Request<{ text: string }>) => bench.work(request) as Promise<{ text: string }>;
  const served = await serveService({
    space,
    service: "auth",
    description: "A test's own.",
    version: "0.1.0",
    connection: serving,
    incarnation,
    contracts,
    describe,
    endpoints: [endpoint(write, handle), endpoint(read, handle)],
    state: () => bench.state,
    provisioned: { admits: () => true },
    ports,
    log: pino({ level: "debug" }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
  });
  return Object.assign(bench, { served });
}
