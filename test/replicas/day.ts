/** What a space is asked all day, each request once, and everything that it was told in answer. */
import { decodeJwt } from "jose";
import { credentialIdOf } from "../../shared/canonical.ts";
import type { CallOptions } from "../../shared/client.ts";
import { actorGrant } from "../../shared/contracts/auth/actors/actor-grant.ts";
import { actorList } from "../../shared/contracts/auth/actors/actor-list.ts";
import { managerRenew } from "../../shared/contracts/auth/manager/renew.ts";
import { runAttempt } from "../../shared/contracts/auth/runs/run-attempt.ts";
import type { Operation } from "../../shared/contracts/operation.ts";
import { systemPorts } from "../../shared/ports.ts";
import type { Nonce, Owner, Uid } from "../../shared/tokens.ts";
import { Actor } from "../../shared/tokens.ts";
import type { TestManager } from "../kit/manager.ts";
import type { Person } from "../kit/person.ts";
import type { TestSpace } from "../kit/space.ts";
import { attemptOf, renewal } from "../races/mixed-requests.ts";
import { freshOwner, requestId } from "../services/auth/lifecycles.ts";
import { admittedRun } from "../services/auth/runs/runs.ts";
import type { Doors } from "./doors.ts";

const ACTOR = Actor.parse("cli");

export interface Grant {
  readonly owner: Owner;
  readonly lifecycleUid: Uid;
  /** Monotonic ms. */
  readonly begunAt: number;
  readonly acknowledgedAt: number;
}

/** Answers that promise something: each must be found in the ledger afterwards. */
export class Promised {
  /** In the order in which they were acknowledged. */
  readonly grants: Grant[] = [];
  /** Owners whose grant was not answered. */
  readonly unanswered: Owner[] = [];
  /** Credentials of managers and runs. */
  readonly credentialIds: string[] = [];
  /** The credentials behind bearers, by their lifecycle. */
  readonly bearers: { readonly uid: Uid; readonly credentialId: string }[] = [];
  /** Of connections that were let in. */
  readonly nonces: Nonce[] = [];
}

export type Kind = "exchange" | "connect" | "renew" | "attempt" | "grant" | "list";

/** Which service each is answered by. */
export const ANSWERED_BY = {
  exchange: "exchange",
  connect: "callout",
  renew: "auth",
  attempt: "auth",
  grant: "auth",
  list: "auth",
} as const satisfies Record<Kind, string>;

export interface Asking {
  readonly space: TestSpace;
  readonly person: Person;
  readonly manager: TestManager;
  readonly promised: Promised;
  /** No client of these repeats by itself. */
  readonly once: CallOptions;
}

/** Through the callout, with a bearer of before. */
export const connects =
  ({ person, promised }: Asking, bearer: string) =>
  async (): Promise<void> => {
    const { connection, nonce } = await person.connectWith(bearer);
    promised.nonces.push(nonce);
    await connection.close();
  };

export const exchanges =
  ({ person, promised }: Asking, doors: Doors) =>
  async (): Promise<void> => {
    const login = { idpToken: person.idToken(), actor: person.actor };
    const { token } = await doors.post<{ token: string }>("/exchange", login);
    const { act } = decodeJwt<{ act: { lifecycleUid: Uid; credentialId: string } }>(token);
    promised.bearers.push({ uid: act.lifecycleUid, credentialId: act.credentialId });
  };

export const renews = (asking: Asking) => (): Promise<void> => issues(asking, managerRenew, renewal(asking.manager));

/** Admitted by the test's own hand, so that each attempt is one request to one service. */
export const attempts = (asking: Asking) => async (): Promise<void> =>
  issues(asking, runAttempt, attemptOf(asking.manager, await admittedRun(asking.space, asking.manager)));

async function issues({ manager, promised, once }: Asking, operation: Operation, args: object): Promise<void> {
  const { credentials } = (await manager.client.call<Operation>(operation, args, once)) as {
    credentials: Record<string, { jwt: string }>;
  };
  promised.credentialIds.push(...Object.values(credentials).map(({ jwt }) => credentialIdOf(jwt)));
}

export const grantTo = ({ space, once }: Pick<Asking, "space" | "once">, owner: Owner) =>
  space.operator.call(
    actorGrant,
    { requestId: requestId(), owner, actor: ACTOR, scope: [], allowSubscribe: [], allowPublish: [] },
    once,
  );

export const grants = (asking: Asking) => async (): Promise<void> => {
  const { promised } = asking;
  const owner = freshOwner();
  const begunAt = systemPorts.monotonic();
  try {
    const { lifecycleUid } = await grantTo(asking, owner);
    promised.grants.push({ owner, lifecycleUid, begunAt, acknowledgedAt: systemPorts.monotonic() });
  } catch (error) {
    promised.unanswered.push(owner);
    throw error;
  }
};

/** Whatever was acknowledged last is in a list that was asked for afterwards. */
export const lists =
  ({ space, promised, once }: Asking) =>
  async (): Promise<void> => {
    const last = promised.grants.at(-1);
    const asked = { requestId: requestId(), ...(last ? { owner: last.owner } : {}) };
    const { actors } = await space.operator.call(actorList, asked, once);
    if (last && (actors.length !== 1 || actors[0]?.lifecycleUid !== last.lifecycleUid)) {
      throw new WrongAnswer(`${last.owner} was granted ${last.lifecycleUid}, listed is ${JSON.stringify(actors)}`);
    }
  };

/** An answer that is neither right nor a refusal. */
export class WrongAnswer extends Error {}
