/** Publish rows for our own services, derived from the declarations of their operations (architecture §2). */
import { authOperations } from "../../contracts/auth.ts";
import { custodianOperations } from "../../contracts/custodian.ts";
import { exchangeOperations } from "../../contracts/exchange.ts";
import type { CallerKind, Operation, ServiceName } from "../../contracts/operation.ts";

const OPERATIONS: readonly Operation[] = [...authOperations, ...exchangeOperations, ...custodianOperations];

/** The commands that a service answers. */
export const commandsOf = (service: ServiceName): string[] =>
  OPERATIONS.filter((operation) => operation.service === service).map(({ name }) => name);

/** Whose requests these are. */
export interface Asker {
  readonly P: string;
  readonly T: string;
}

/** One row per operation that admits such a caller; `target` stands in those that name one. */
export const requests = (asker: Asker, caller: CallerKind, target?: string): string[] =>
  OPERATIONS.filter(({ callers }) => callers.includes(caller)).flatMap((operation) => rows(asker, operation, target));

/** One row per operation that a route of the gateway leads to. */
export const routed = (asker: Asker): string[] =>
  OPERATIONS.filter(({ http, callers }) => http !== undefined || callers.includes("gateway")).flatMap((operation) =>
    rows(asker, operation),
  );

function rows({ P, T }: Asker, { service, name, modes }: Operation, target?: string): string[] {
  const forms = modes.length === 0 ? [name] : modes.map((mode) => `${name}.${mode}.${target}`);
  return forms.map((form) => `${P}.ep.one.${service}.${form}.${T}.*`);
}
