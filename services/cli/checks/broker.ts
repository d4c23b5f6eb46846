/** Whether every server is as the authority needs it, and whether our clocks agree (identity §1.4). */
import { createInbox, type NatsConnection } from "@nats-io/nats-core";
import { CLI, CONNECTION, LIFE } from "../../../shared/limits.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { bad, type Finding, good } from "./finding.ts";

export interface Varz {
  readonly server_name: string;
  readonly version: string;
  readonly now: string;
  readonly max_control_line: number;
  readonly auth_timeout: number;
  /** ns */
  readonly ping_interval: number;
  readonly ping_max: number;
  readonly jetstream?: {
    readonly config?: { readonly sync_always?: boolean };
    readonly limits?: { readonly default_max_consumers?: number };
  };
}

const NEEDED = {
  version: [2, 12],
  maxControlLine: CONNECTION.controlLine,
  authTimeoutS: 5,
  deadAfterS: 60,
  maxConsumers: 100_000,
} as const;
const set = (line: string): string => `set ${line}, as nats-server.conf does, and restart it`;

/** `system` may ask the servers of the system account. */
export async function brokerFindings(system: NatsConnection, inboxPrefix: string): Promise<Finding[]> {
  const answers = await askAll(system, createInbox(inboxPrefix));
  if (answers.length === 0)
    return [bad("broker", "no server answers on the system account", "see the broker's own log")];
  return answers.flatMap(({ varz, at }) => serverFindings(varz, at));
}

/** `at` is our time when the server told its own, in Unix ms. */
export function serverFindings(varz: Varz, at: number): Finding[] {
  const name = varz.server_name.length > 20 ? `${varz.server_name.slice(0, 8)}…` : varz.server_name;
  const check = (what: string): string => `broker ${name}: ${what}`;
  const judge = (what: string, right: boolean, found: string, remedy: string): Finding =>
    right ? good(check(what), found) : bad(check(what), found, remedy);
  const [major = 0, minor = 0] = varz.version.split(".").map(Number);
  const recent = major > NEEDED.version[0] || (major === NEEDED.version[0] && minor >= NEEDED.version[1]);
  const deadAfter = (varz.ping_interval / 1e9) * (varz.ping_max + 1);
  const offset = Math.round(at - Date.parse(varz.now));
  const { sync_always: syncAlways } = varz.jetstream?.config ?? {};
  const consumers = varz.jetstream?.limits?.default_max_consumers ?? 0;
  return [
    judge("version", recent, varz.version, `install nats-server ${NEEDED.version.join(".")} or later`),
    judge(
      "max_control_line",
      varz.max_control_line >= NEEDED.maxControlLine,
      String(varz.max_control_line),
      set(`max_control_line: ${NEEDED.maxControlLine}`),
    ),
    judge(
      "authorization timeout",
      varz.auth_timeout === NEEDED.authTimeoutS,
      `${varz.auth_timeout} s`,
      set(`authorization { timeout: ${NEEDED.authTimeoutS} }`),
    ),
    judge(
      "dead connections",
      deadAfter <= NEEDED.deadAfterS,
      `dropped after ${deadAfter} s`,
      set('ping_interval: "20s" and ping_max: 2'),
    ),
    judge(
      "JetStream",
      syncAlways === true,
      syncAlways ? "acknowledges what is on disk" : "acknowledges before the disk, or is off",
      set("jetstream { sync_interval: always }"),
    ),
    judge(
      "consumers of a stream",
      consumers >= NEEDED.maxConsumers,
      String(consumers),
      set(`jetstream { limits { default_max_consumers: ${NEEDED.maxConsumers} } }`),
    ),
    judge(
      "clock",
      Math.abs(offset) < LIFE.skewS * 1_000,
      `${offset} ms from ours`,
      "set both clocks by NTP: more than 5 s refuses fresh tokens",
    ),
  ];
}

/** All servers' answers, with the time in the middle of asking and hearing. */
async function askAll(system: NatsConnection, inbox: string): Promise<{ varz: Varz; at: number }[]> {
  const answers: { varz: Varz; at: number }[] = [];
  const asked = systemPorts.now();
  const subscription = system.subscribe(inbox, {
    callback: (error, message) => {
      if (error || message.data.length === 0) return;
      const { data } = message.json<{ data?: Varz }>();
      if (data) answers.push({ varz: data, at: (asked + systemPorts.now()) / 2 });
    },
  });
  system.publish("$SYS.REQ.SERVER.PING.VARZ", undefined, { reply: inbox });
  await systemPorts.sleep(CLI.gatherMs);
  subscription.unsubscribe();
  return answers;
}
