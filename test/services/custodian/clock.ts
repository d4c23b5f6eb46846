/** A clock that nothing but waiting moves. */
import { type Ports, systemPorts } from "../../../shared/ports.ts";

export interface Clock extends Ports {
  /** Monotonic ms. */
  time: number;
}

export function waitingClock(): Clock {
  const clock: Clock = {
    time: 1_000,
    now: () => clock.time,
    monotonic: () => clock.time,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      clock.time += ms;
    },
    random: systemPorts.random,
  };
  return clock;
}
