/** The loopback face of a gateway in front of a test's space, in the test's own process. */
import { pino } from "pino";
import { openFaces } from "../../gateway/start.ts";
import { OwnedConnections, runCloseSteps } from "../../shared/nats/owned.ts";
import { systemPorts } from "../../shared/ports.ts";
import type { TestSpace } from "./space.ts";

export interface TestFace {
  readonly url: string;
  readonly capability: string;
  close(): Promise<void>;
}

export async function startFace({ space, secrets, servers }: TestSpace): Promise<TestFace> {
  const owned = new OwnedConnections({ servers }, systemPorts);
  const log = pino({ level: "silent" });
  const [face] = await openFaces({ space, port: 0, secrets, owned, ports: systemPorts, log });
  if (face?.cap === undefined) throw new Error("no loopback face");
  return {
    url: face.url,
    capability: face.cap,
    async close() {
      await face.close();
      await runCloseSteps(owned.closeSteps(""));
    },
  };
}
