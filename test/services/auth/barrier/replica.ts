/** One replica's part in the plane claim, over a broker without accounts; its custodian says what a test wants. */
import { pino } from "pino";
import { Compile } from "typebox/compile";
import type { Held } from "../../../../services/auth/barrier/held.ts";
import { PlaneClaim } from "../../../../services/auth/barrier/plane.ts";
import type { Operation } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import type { ConnectionLiveness, CustodyClient } from "../../../../shared/custody.ts";
import { AuthorityError } from "../../../../shared/errors.ts";
import { RESCAN_MS } from "../../../../shared/limits.ts";
import { type Tuple, tupleOf } from "../../../../shared/nats/connect.ts";
import { type Ports, systemPorts } from "../../../../shared/ports.ts";
import type { Broker } from "../../../kit/broker.ts";
import { freshUid } from "../../../kit/rows.ts";
import { openStore, type TestStore } from "../../../kit/store.ts";

type Verdict = ConnectionLiveness["ledger"]["state"];

/** Rescans come soon. */
export const ports: Ports = {
  ...systemPorts,
  sleep: (ms, signal) => systemPorts.sleep(ms === RESCAN_MS ? 100 : Math.min(ms, 200), signal),
};

/** What the custodian says of a connection, or of the ledger's and the records' one. */
export type Word = Verdict | readonly [Verdict, Verdict] | Error | "silence";

/** Answers as the custodian does. */
export function custodian(word: (ledger: Tuple) => Word): CustodyClient & { readonly asked: Tuple[] } {
  const asked: Tuple[] = [];
  return {
    asked,
    call: (async (operation: Operation, { ledger, records, ...more }: { ledger: Tuple; records: Tuple }) => {
      if (!Compile(operation.input).Check({ ledger, records, ...more }))
        throw new AuthorityError("bad-request", "args");
      asked.push(ledger);
      const said = word(ledger);
      if (said instanceof Error) throw said;
      if (said === "silence") return new Promise(() => {});
      const [one, other] = typeof said === "string" ? [said, said] : said;
      const sweepComplete = one !== "unknown" && other !== "unknown";
      return { ledger: { tuple: ledger, state: one }, records: { tuple: records, state: other }, sweepComplete };
    }) as CustodyClient["call"],
  };
}

export class Replica {
  readonly plane: PlaneClaim;
  readonly lines: string[] = [];
  readonly instanceId = freshUid();
  /** Claims that it won, in order. */
  readonly won: Held[] = [];
  /** What the custodian was asked about. */
  readonly asked: Tuple[];
  /** What a release waits for. */
  idle: () => Promise<void> = async () => {};
  readonly #scans: TestStore[] = [];
  readonly #servers: string;
  #tuple: Tuple | undefined;
  #ended: (() => void)[] = [];
  closed = false;

  private constructor(servers: string, store: TestStore, peers: ReturnType<typeof custodian>) {
    this.#servers = servers;
    this.asked = peers.asked;
    this.plane = new PlaneClaim({
      store: store.store,
      peers,
      ports,
      log: pino({ level: "debug" }, { write: (line: string) => void this.lines.push(line) }),
      scan: {
        current: () => (this.#tuple ? this.#scans.at(-1)?.connection : undefined),
        tuple: () => this.#tuple,
        onEnded: (listener) => void this.#ended.push(listener),
        close: async () => {
          this.closed = true;
          await this.endScan();
        },
      },
    });
  }

  static async start(broker: Broker, store: TestStore, word: (ledger: Tuple) => Word): Promise<Replica> {
    const replica = new Replica(broker.url, store, custodian(word));
    await replica.openScan();
    replica.plane.start(
      { instanceId: replica.instanceId, epoch: 3 },
      (held) => {
        replica.won.push(held);
        return new Promise((resolve) => held.signal.addEventListener("abort", () => resolve(), { once: true }));
      },
      () => replica.idle(),
    );
    return replica;
  }

  /** Of the scan connection that is open now. */
  get tuple(): Tuple | undefined {
    return this.#tuple;
  }

  async openScan(): Promise<void> {
    const scan = await openStore(this.#servers, { streams: [] });
    this.#scans.push(scan);
    this.#tuple = tupleOf(scan.connection, createKeyPair("user").public);
  }

  async endScan(): Promise<void> {
    this.#tuple = undefined;
    await this.#scans.at(-1)?.close();
    for (const listener of this.#ended) listener();
  }

  async stop(store: TestStore): Promise<void> {
    await this.plane.release(async () => store.store).catch(() => {});
  }
}
