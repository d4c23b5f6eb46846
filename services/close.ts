/** The ordered close of a process: every step runs, failures come together, a repeat does what is left (lifecycles §8.3). */
import { type CloseStep, type OwnedConnections, runCloseSteps } from "../shared/nats/owned.ts";
import type { RunningService } from "./service.ts";

interface Parts {
  readonly services: readonly RunningService[];
  /** The HTTP faces of this process. */
  readonly faces: readonly { readonly name: string; close(): Promise<void> }[];
  readonly owned: OwnedConnections;
}

/** Who waits is told by `serve` before who is asked is gone: `serve:auth` is the last to go. */
const CONNECTION_ORDER = ["gateway:", "callout", "system", "work:", "scan:", "store:", "serve:"] as const;

export class OrderedClose {
  readonly #parts: Parts;
  readonly #done = new Set<string>();
  #attempt: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Step 1 alone: all services at once, so that replicas take over together. */
  async drain(): Promise<void> {
    await Promise.all(this.#parts.services.map((service) => service.drain()));
  }

  /** Concurrent calls share one attempt; after a failure the next call tries what is left. */
  run(): Promise<void> {
    this.#attempt ??= this.#once().catch((error) => {
      this.#attempt = undefined;
      throw error;
    });
    return this.#attempt;
  }

  async #once(): Promise<void> {
    const { services, faces, owned } = this.#parts;
    const failures: unknown[] = [];
    let steps = 0;
    const stage = async (...list: CloseStep[]): Promise<void> => {
      steps += list.length;
      await runCloseSteps(list).catch((error: AggregateError) => failures.push(...error.errors));
    };
    await Promise.all(
      services.map((service) => stage(...this.#pending(`drain:${service.name}`, () => service.drain()))),
    );
    await stage(...faces.flatMap((face) => this.#pending(`gateway:${face.name}`, () => face.close())));
    await stage(...services.flatMap((service) => this.#pending(labelOf(service), () => service.close())));
    // Before the list is made, so that nothing opened meanwhile is missing on it. A claim still held needs another attempt.
    if (failures.length === 0) owned.seal();
    await stage(...owned.closeSteps(...CONNECTION_ORDER));
    if (failures.length > 0) throw failedClose(failures, steps);
  }

  /** The step, unless it succeeded before. */
  #pending(label: string, close: () => Promise<void>): CloseStep[] {
    if (this.#done.has(label)) return [];
    const run = async (): Promise<void> => {
      await close();
      this.#done.add(label);
    };
    return [{ label, run }];
  }
}

/** What `auth` gives up beyond its connections is the claim. */
const labelOf = ({ name }: RunningService): string => (name === "auth" ? "plane" : name);

function failedClose(failures: readonly unknown[], steps: number): AggregateError {
  const labels = failures.map((failure) => (failure as { connection?: string }).connection ?? "?").join(", ");
  return new AggregateError(failures, `close: ${failures.length} of ${steps} failed: ${labels}`);
}
