/** Runs the steps of a connect over rows in memory. */
import { beforeAll, expect } from "vitest";
import { CONNECT_STEPS, type Reach } from "../../../services/callout/checks.ts";
import { Issuances } from "../../../services/callout/issuances.ts";
import type { Caller } from "../../../services/callout/log.ts";
import type { Entered } from "../../../services/callout/steps.ts";
import { decodeJwt, type NatsClaims, type SubjectRules } from "../../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { type ErrorCode, isAuthorityError } from "../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { AccountNkey, EndpointLabel, type Nonce, Principal, type Uid, UserNkey } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import { Ledger } from "./ledger.ts";
import {
  alice,
  type BearerIssuer,
  type BearerOptions,
  bearerIssuer,
  freshNonce,
  grant,
  type Identity,
  install,
  space,
} from "./people.ts";

const ports = systemPorts;
export const account = createKeyPair("account");
export const signing = createKeyPair("account");
export const manager = EndpointLabel.parse("manager");
export let issuer: BearerIssuer;
beforeAll(async () => {
  issuer = await bearerIssuer();
});

export type Outcome =
  | { readonly jwt: string }
  | { readonly code: ErrorCode; readonly check: string | undefined; readonly step: number | undefined };

interface Try {
  readonly token?: string;
  readonly name?: string;
  readonly inTime?: boolean;
  readonly ready?: boolean;
  readonly issuances?: Issuances;
}

export const userNkey = UserNkey.parse(createKeyPair("user").public);

export function reachOf(ledger: Ledger, ready = true, issuances = new Issuances(ports)): Reach {
  return {
    space,
    store: ledger,
    bearerKeys: { of: issuer.keyOf },
    signer: { space, account: AccountNkey.parse(account.public), signing },
    issuances,
    ports,
    ready: () => ready,
  };
}

export async function connect(ledger: Ledger, attempt: Try): Promise<Outcome & { readonly caller: Caller }> {
  const caller: Caller = {};
  let entered: Entered | undefined;
  const { token, name, inTime = true, ready = true, issuances } = attempt;
  const client = { host: "192.0.2.7", id: 1 };
  const request = { key: new Uint8Array(32), serverId: "N", userNkey, token, name, client };
  const start = {
    reach: reachOf(ledger, ready, issuances),
    request,
    inTime,
    work: ownWork(ports, 4_500),
    note: (more: Caller) => Object.assign(caller, more),
  };
  try {
    const { user } = await CONNECT_STEPS.run(start, (step) => {
      entered = step;
    });
    return { jwt: user.jwt, caller };
  } catch (error) {
    if (!isAuthorityError(error)) throw error;
    return { code: error.code, check: entered?.name, step: entered?.number, caller };
  }
}

export interface World {
  readonly ledger: Ledger;
  readonly who: Identity;
  readonly nonce: Nonce;
  attempt(options?: BearerOptions & Try): Promise<Outcome & { readonly caller: Caller }>;
}

export function world(who: Identity = grant()): World {
  const ledger = new Ledger();
  void install(ledger, who); // rows in memory are there at once
  const nonce = freshNonce();
  return {
    ledger,
    who,
    nonce,
    async attempt(options = {}) {
      return connect(ledger, { token: await issuer.bearer(who, options), name: nonce, ...options });
    },
  };
}

export const admitted = (outcome: Outcome) => {
  if (!("jwt" in outcome)) throw new Error(`denied: ${outcome.code} at ${outcome.check}`);
  return decodeJwt(outcome.jwt);
};

export async function denied(
  { ledger }: World,
  outcome: Promise<Outcome>,
  code: ErrorCode,
  check: string,
): Promise<void> {
  expect(await outcome).toMatchObject({ code, check });
  expect(ledger.written).toEqual([]);
}

export function putManager(
  ledger: Ledger,
  instanceId: Uid,
  processEpoch: number,
  state: "open" | "frozen" = "open",
): void {
  ledger.put(epGateRows.key({ endpoint: manager, instanceId }), {
    state,
    generation: 1,
    processEpoch,
    registrationRevision: 1,
    nameAuthorityRevision: 1,
    principal: Principal.parse(`${alice}.manager_serve_${instanceId}`),
    ...(state === "frozen" ? { op: { opId: newUid(ports), kind: "registration" as const } } : {}),
  });
}

export const permissionsIn = ({ nats }: NatsClaims) => nats as unknown as { pub: SubjectRules; sub: SubjectRules };
