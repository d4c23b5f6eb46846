/** Starts several services at once, each within its time. */
import { HOST } from "../shared/limits.ts";
import type { Ports } from "../shared/ports.ts";
import type { HostedService, RunningService, ServiceDeps, StartService } from "./service.ts";

/** Loaded when asked for: a process has the code of its own services alone. */
const STARTS: Readonly<Record<HostedService, () => Promise<StartService>>> = {
  custodian: async () => (await import("./custodian/start.ts")).startCustodian,
  auth: async () => (await import("./auth/start.ts")).startAuth,
  exchange: async () => (await import("./exchange/start.ts")).startExchange,
  callout: async () => (await import("./callout/start.ts")).startCallout,
};

/** What bounds one service's start. */
export interface StartBounds {
  readonly signal: AbortSignal;
  foundStore(): void;
}

/** Together: each waits for what it needs of the others. The first failure gives the rest up. */
export async function startTogether(
  names: readonly HostedService[],
  depsOf: (service: HostedService, bounds: StartBounds) => ServiceDeps,
  started: RunningService[],
  { ports, signal }: { readonly ports: Ports; readonly signal: AbortSignal },
  giveUp: AbortController,
): Promise<void> {
  const abort = (): void => giveUp.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort);
  let first: unknown;
  await Promise.all(
    names.map(async (name) => {
      const found = new AbortController();
      const late = new AbortController();
      ports.sleep(HOST.storeWaitMs, found.signal).then(
        () => late.abort(),
        () => {},
      );
      const mayWait = AbortSignal.any([giveUp.signal, late.signal]);
      try {
        const start = await STARTS[name]();
        started.push(await start(depsOf(name, { signal: mayWait, foundStore: () => found.abort() })));
      } catch (error) {
        first ??= error;
        giveUp.abort(error);
      } finally {
        found.abort();
      }
    }),
  );
  signal.removeEventListener("abort", abort);
  if (first !== undefined) throw first;
}
