/** Ports whose clock a test moves; randomness and waits stay real. */
import { type Ports, systemPorts } from "../../shared/ports.ts";

export interface TestPorts extends Ports {
  /** Moves both clocks. */
  advance(ms: number): void;
  /** Moves the wall clock alone. */
  step(ms: number): void;
}

export function testPorts(start = 1_800_000_000_000): TestPorts {
  let wall = start;
  let steady = 1_000;
  return {
    ...systemPorts,
    now: () => wall,
    monotonic: () => steady,
    advance(ms) {
      wall += ms;
      steady += ms;
    },
    step(ms) {
      wall += ms;
    },
  };
}
