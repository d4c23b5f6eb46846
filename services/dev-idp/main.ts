/** `tsx services/dev-idp/main.ts --dev --port 9180`: prints the pin for `idp.json`, then serves until it is stopped. */
import { parseArgs } from "node:util";
import { textOf } from "../../shared/errors.ts";
import { systemPorts } from "../../shared/ports.ts";
import { startDevIdp } from "./provider.ts";

const EXIT_REFUSED = 2;

try {
  const { values } = parseArgs({
    options: {
      dev: { type: "boolean", default: false },
      port: { type: "string", default: "0" },
      address: { type: "string", default: "127.0.0.1" },
      "public-url": { type: "string" },
    },
  });
  const provider = await startDevIdp({
    dev: values.dev,
    environment: process.env.NODE_ENV,
    address: values.address,
    port: Number(values.port),
    publicUrl: values["public-url"],
    ports: systemPorts,
  });
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void provider.close());
  process.stdout.write(`${JSON.stringify({ ver: 1, pins: [provider.pin] })}\n`);
} catch (error) {
  process.stderr.write(`${textOf(error)}\n`);
  process.exitCode = EXIT_REFUSED;
}
