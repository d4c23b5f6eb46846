/** The main job, step by step, against a running space. */
import type { Ports } from "../../shared/ports.ts";
import type { Space } from "../../shared/tokens.ts";
import type { Report } from "./report.ts";

/** Where the parts of the space are. */
export interface TourEnv {
  readonly space: Space;
  readonly stateDir: string;
  /** URL of the broker. */
  readonly servers: string;
  /** URLs of the gateway's faces; the capability of the loopback face stands in the state folder. */
  readonly loopbackUrl: string;
  readonly publicUrl: string;
  /** URL of the development identity provider. */
  readonly idpUrl: string;
  readonly ports: Ports;
}

export async function runTour(_env: TourEnv, _report: Report): Promise<{ steps: number; failed: number }> {
  return { steps: 0, failed: 0 };
}
