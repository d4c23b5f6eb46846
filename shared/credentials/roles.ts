/** Who holds a credential of each role, for how long, under which profile; and every name that is derived (state §5). */
import { sha256Hex } from "../canonical.ts";
import { internal } from "../errors.ts";
import { LIFE } from "../limits.ts";
import type { Actor, RunId, SessionId, Uid } from "../tokens.ts";
import type { ProfileName } from "./profiles.ts";

/** What a holder's actor follows from. */
export interface HolderSource {
  readonly instanceId?: Uid;
  readonly runId?: RunId;
  /** The principal's own actor: the session's caller, the person behind a run operator. */
  readonly actor?: Actor;
}

export interface RoleRow {
  readonly actor: (from: HolderSource) => Actor;
  /** Absent where the credential is a row alone and no JWT. */
  readonly profile?: ProfileName;
  /** The longest life in seconds; a caller may bound it further. */
  readonly lifeS: (standingTtlS: number) => number;
  /** Contained by a registration of the instance. */
  readonly serveFamily: boolean;
  readonly source: "root" | "session";
  /** Its name among the credentials of an answer, where an attempt issues it. */
  readonly attemptName?: string;
}

const own = (from: HolderSource): Actor => given(from.actor, "actor");
const ofInstance = (prefix: string) => (from: HolderSource) =>
  `${prefix}_${given(from.instanceId, "instanceId")}` as Actor;
const ofRun = (from: HolderSource): Actor => runHolder(given(from.runId, "runId")).actor;

const standing = (standingTtlS: number): number => standingTtlS;
const fixed = (seconds: number) => () => seconds;

const role = (row: Omit<RoleRow, "serveFamily" | "source"> & Partial<RoleRow>): RoleRow =>
  Object.freeze({ serveFamily: false, source: "root", ...row });

const table = {
  root: role({ actor: own, lifeS: fixed(LIFE.rootMs / 1_000) }),
  sessionHolder: role({ actor: own, lifeS: fixed(LIFE.sessionMaxS), source: "session" }),
  supervisor: role({ actor: ofInstance("manager"), profile: "supervisor", lifeS: standing }),
  executor: role({ actor: ofInstance("manager_exec"), profile: "executor", lifeS: fixed(LIFE.oneShotS) }),
  serve: role({ actor: ofInstance("manager_serve"), profile: "endpoint-serve", lifeS: standing, serveFamily: true }),
  goalWriter: role({ actor: ofInstance("manager_goal"), profile: "goal-writer", lifeS: standing, serveFamily: true }),
  sessionLedger: role({
    actor: ofInstance("manager_session"),
    profile: "session-ledger",
    lifeS: standing,
    serveFamily: true,
  }),
  sessionServing: role({
    actor: ofInstance("manager_serve"),
    profile: "session-serving",
    lifeS: fixed(LIFE.sessionMaxS),
    serveFamily: true,
    source: "session",
  }),
  transferReader: role({ actor: ofInstance("manager"), profile: "transfer-reader", lifeS: fixed(LIFE.oneShotS) }),
  retirementRequester: role({
    actor: ofInstance("manager_serve"),
    profile: "retirement-requester",
    lifeS: fixed(LIFE.oneShotS),
  }),
  runDriver: role({ actor: ofRun, profile: "run-driver", lifeS: standing, attemptName: "driver" }),
  runMediator: role({ actor: ofRun, profile: "run-mediator", lifeS: standing, attemptName: "mediator" }),
  runOperator: role({ actor: own, profile: "run-operator", lifeS: fixed(LIFE.operatorS), attemptName: "operator" }),
} as const satisfies Record<string, RoleRow>;

export type Role = keyof typeof table;
export const ROLES: Readonly<Record<Role, RoleRow>> = table;
export const ROLE_NAMES = Object.keys(table) as readonly Role[];

/** The five identities of a manager, in the order in which proofs and answers list them (operations §2). */
export const IDENTITIES = ["supervisor", "executor", "serve", "goalWriter", "sessionLedger"] as const;
export type Identity = (typeof IDENTITIES)[number];

/** What a row says the credential was issued on. */
export function sourceChain(role: Role, sessionId?: SessionId): string[] {
  if (ROLES[role].source === "root") return ["root"];
  return [`session.${given(sessionId, "sessionId")}`];
}

/** The actors of a manager instance, one per identity. */
export const actorsOf = (instanceId: Uid): Readonly<Record<Identity, Actor>> => ({
  supervisor: ROLES.supervisor.actor({ instanceId }),
  executor: ROLES.executor.actor({ instanceId }),
  serve: ROLES.serve.actor({ instanceId }),
  goalWriter: ROLES.goalWriter.actor({ instanceId }),
  sessionLedger: ROLES.sessionLedger.actor({ instanceId }),
});

/** The actor under which an instance of `auth` serves; its owner is `local`. */
export const authServeActor = (instanceId: Uid): Actor => `auth_serve_${instanceId}` as Actor;

/** Actor and uid under which the driver and the mediator of a run act. */
export function runHolder(runId: RunId): { readonly actor: Actor; readonly uid: Uid } {
  const hex = sha256Hex(runId);
  return { actor: `wf_${hex.slice(0, 12)}` as Actor, uid: hex.slice(12, 38) as Uid };
}

const DERIVED = /^((manager(_(exec|serve|goal|session))?|auth_serve)_[a-z0-9]{26,32}|wf_[0-9a-f]{12})$/;

/** Such a name could pass as a gate's principal or a run's; nobody is granted one. */
export const isDerivedActor = (actor: string): boolean => DERIVED.test(actor);

const opId = (text: string): Uid => sha256Hex(text).slice(0, 26) as Uid;

/** The one terminal operation of a managed lifecycle, whichever door asks (lifecycles §1). */
export const retireOpId = (uid: Uid): Uid => opId(`retire:${uid}`);
/** The one terminal operation of a person's lifecycle. */
export const interactiveRetireOpId = (uid: Uid): Uid => opId(`interactive-retire:${uid}`);
/** The one terminal operation of an endpoint instance. */
export const instanceEndOpId = (instanceId: Uid): Uid => opId(`instance-end:${instanceId}`);

function given<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw internal(`a role needs ${name}`);
  return value;
}
