/** A space with a running exchange, and what its refusals say. */
import { expect } from "vitest";
import { startExchange } from "../../../services/exchange/start.ts";
import type { RunningService, ServiceDeps } from "../../../services/service.ts";
import { type Bearer, validateBearer } from "../../../shared/bearer.ts";
import { BearerKeys } from "../../../shared/bearer-keys.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { trustRows } from "../../../shared/rows/connect.ts";
import type { IdpPin } from "../../../shared/secrets/pins.ts";
import { pin } from "../../kit/logins.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";

export interface ExchangeSpace {
  readonly space: TestSpace;
  readonly service: RunningService;
  /** What it logged. */
  readonly lines: readonly string[];
  stop(): Promise<void>;
}

export async function startExchangeSpace(
  more: { readonly pins?: readonly IdpPin[]; readonly deps?: Partial<ServiceDeps> } = {},
): Promise<ExchangeSpace> {
  const space = await startSpace({ pins: more.pins ?? [pin] });
  const lines: string[] = [];
  const service = await startExchange(await space.deps("exchange", { lines, ...more.deps }));
  return {
    space,
    service,
    lines,
    async stop() {
      await service.close();
      await space.stop();
    },
  };
}

/** The refusal, which came before anything was done. */
export async function refusal(work: Promise<unknown>): Promise<AuthorityError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AuthorityError)) throw new Error("not refused", { cause: error });
  expect(error.outcome).toBe("not-executed");
  return error;
}

export const codeOf = async (work: Promise<unknown>): Promise<string> => (await refusal(work)).code;

/** The claims, as every verifier reads them. */
export function opened({ store, space }: TestSpace, token: string): Promise<Bearer> {
  const keys = new BearerKeys(async () => {
    const trust = await store.read(trustRows.key({}));
    if (!trust) throw new Error("no trust");
    return trust.value;
  }, systemPorts);
  return validateBearer(token, space, (kid) => keys.of(kid), systemPorts);
}
