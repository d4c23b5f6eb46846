/** Which services answer, as `nats micro ls` would see them. */
import { createInbox, type NatsConnection } from "@nats-io/nats-core";
import { CLI } from "../../../shared/limits.ts";
import { systemPorts } from "../../../shared/ports.ts";
import type { Space } from "../../../shared/tokens.ts";
import { bad, type Finding, good } from "./finding.ts";

export interface Ping {
  readonly name: string;
  readonly version: string;
  readonly metadata?: { readonly space?: string; readonly instance?: string };
}

export async function serviceFindings(
  connection: NatsConnection,
  space: Space,
  wanted: readonly string[],
): Promise<Finding[]> {
  const pings = await heard(connection);
  return wanted.map((name) => {
    const replicas = pings.filter((ping) => ping.name === name);
    const check = `service ${name}`;
    if (replicas.length === 0)
      return bad(check, "nobody serves it", `start it: mesh-authority serve --space ${space} --services ${name}`);
    const versions = [...new Set(replicas.map(({ version }) => version))];
    return good(check, `${replicas.length} running, version ${versions.join(", ")}`);
  });
}

/** Every service that answers a ping. */
export async function heard(connection: NatsConnection): Promise<Ping[]> {
  const pings: Ping[] = [];
  const inbox = createInbox(); // where `nats micro` listens: a service may answer there
  const subscription = connection.subscribe(inbox, {
    callback: (error, message) => {
      if (!error && message.data.length > 0) pings.push(message.json<Ping>());
    },
  });
  connection.publish("$SRV.PING", undefined, { reply: inbox });
  await systemPorts.sleep(CLI.gatherMs);
  subscription.unsubscribe();
  return pings;
}
