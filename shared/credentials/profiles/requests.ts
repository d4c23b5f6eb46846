/** Publish rows for our own services, derived from the declarations of their operations (architecture §2). */
import type { CallerKind, Operation, ServiceName } from "../../contracts/operation.ts";
import type { Mode } from "../../subjects.ts";

type Admitting = Pick<Operation, "service" | "name" | "callers" | "modes">;

const op = (service: ServiceName, name: string, callers: CallerKind[], modes: Mode[] = []): Admitting => ({
  service,
  name,
  callers,
  modes,
});
const M: CallerKind[] = ["human", "manager", "platform"];
const OPERATIONS: readonly Admitting[] = [
  ...["run-admit", "run-attempt", "run-operator"].map((name) => op("auth", name, M)),
  op("auth", "run-revoke", ["human", "manager"]),
  op("auth", "manager-register", ["manager"]),
  ...["prepare", "activate", "renew", "renew-standing"].map((name) =>
    op("auth", `manager-${name}`, [...M, "supervisor"]),
  ),
  ...["renew-run", "session", "transfer-reader", "retire", "maintain-evict", "maintain-reconcile"].map((name) =>
    op("auth", `manager-${name}`, M),
  ),
  op("auth", "manager-session-end", ["human", "session-holder", "manager"]),
  ...["manager-scan-goals", "manager-authorize-admin", "agent-validate-retained"].map((name) => op("auth", name, M)),
  ...["agent-runtime-create", "agent-runtime-status", "agent-enroll", "agent-prepare-retirement"].map((name) =>
    op("auth", name, ["human", "manager"]),
  ),
  op("auth", "retire-lifecycle", ["requester"], ["exact"]),
  op("auth", "agent-retire", ["operator"]),
  op("auth", "drain-abandon", ["operator"]),
  op("auth", "actor-grant", ["operator", "admin"]),
  op("auth", "actor-renew", ["operator", "admin", "human", "manager"]),
  op("auth", "actor-revoke", ["operator", "admin"]),
  op("auth", "actor-list", ["operator", "admin"]),
  ...["platform-assign", "supervisor-assign", "supervisor-end", "instance-retire"].map((name) =>
    op("auth", name, ["operator"]),
  ),
  ...["platform-control", "supervisor-authority"].map((name) => op("auth", name, ["host"])),
  ...["exchange-user", "exchange-agent", "jwks", "discovery"].map((name) => op("exchange", name, ["gateway"])),
  op("exchange", "identify", ["authority"]),
  ...["evict-principals", "principal-liveness", "connection-liveness"].map((name) =>
    op("custodian", name, ["authority"]),
  ),
];

/** The commands that a service answers, `describe` among them. */
export const commandsOf = (service: ServiceName): string[] => [
  ...new Set([...OPERATIONS.filter((operation) => operation.service === service).map(({ name }) => name), "describe"]),
];

export interface Asker {
  readonly P: string;
  readonly T: string;
}

/** One row per operation that admits one of these callers; `target` stands in those that name one. */
export function requests({ P, T }: Asker, callers: readonly CallerKind[], target?: string): string[] {
  return OPERATIONS.filter((operation) => operation.callers.some((caller) => callers.includes(caller))).flatMap(
    ({ service, name, modes }) => {
      const forms = modes.length === 0 ? [name] : modes.map((mode) => `${name}.${mode}.${target}`);
      return forms.map((form) => `${P}.ep.one.${service}.${form}.${T}.*`);
    },
  );
}
