/** Signs one credential and makes its row: the only place where one that leaves the process comes from (state §5). */
import { credentialIdOf } from "../../../shared/canonical.ts";
import { compilePermissions } from "../../../shared/credentials/compile.ts";
import type { Holder as ProfileHolder } from "../../../shared/credentials/profiles/profile.ts";
import type { Bindings, ProfileName } from "../../../shared/credentials/profiles.ts";
import { PROFILES } from "../../../shared/credentials/profiles.ts";
import { ROLES, type Role, sourceChain } from "../../../shared/credentials/roles.ts";
import { signUser } from "../../../shared/credentials/sign.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { LIFE } from "../../../shared/limits.ts";
import { type EpCred, epCredRows } from "../../../shared/rows/credential.ts";
import type { Entry, Key } from "../../../shared/rows/family.ts";
import type { EpGate } from "../../../shared/rows/gate.ts";
import type { GrantedBy } from "../../../shared/rows/members.ts";
import {
  type EndpointLabel,
  principalOf,
  type RunId,
  type SessionId,
  type Triple,
  type Uid,
  type UserNkey,
} from "../../../shared/tokens.ts";
import type { AuthContext } from "../context.ts";

/** One credential to make: its name in the answer, its role, who holds it under which key, and what its profile names. */
export interface Credential<N extends ProfileName = ProfileName> {
  readonly name: string;
  readonly role: Role;
  readonly profile: N;
  readonly key: UserNkey;
  readonly holder: Triple;
  readonly bindings: Omit<Bindings<N>, keyof ProfileHolder>;
  readonly runId?: RunId;
  readonly sessionId?: SessionId;
}

/** Keeps the bindings of a credential typed by its profile. */
export const credential = <N extends ProfileName>(given: Credential<N>): Credential => given as unknown as Credential;

export interface Signed {
  readonly jwt: string;
  /** Unix seconds. */
  readonly exp: number;
}

export interface Minted {
  readonly name: string;
  readonly signed: Signed;
  readonly row: { readonly key: Key<EpCred>; readonly value: EpCred };
}

/** Where the credential's row stands, and what its gate was when it was made. */
export interface Instance {
  readonly endpoint: EndpointLabel;
  readonly instanceId: Uid;
  readonly gate: EpGate;
}

/**
 * `expired` where less than 5 s would be left; `resource-exhausted` over the size the broker takes.
 * `boundMs` are the upper ends of its life, in Unix ms.
 */
export function mint(
  context: AuthContext,
  { endpoint, instanceId, gate }: Instance,
  wanted: Credential,
  more: { readonly grantedBy?: GrantedBy; readonly boundMs?: readonly number[] },
): Minted {
  const { space, data, ports, standingTtlS } = context;
  const now = ports.now();
  const until = Math.min(now + ROLES[wanted.role].lifeS(standingTtlS) * 1_000, ...(more.boundMs ?? []));
  // Before it is cut to whole seconds, or the shortest life that may be configured would never be enough.
  if (until - now < LIFE.minLeftS * 1_000) {
    throw new AuthorityError("expired", "less than 5 s of life would be left");
  }
  const exp = Math.floor(until / 1_000);
  const { key, holder } = wanted;
  const bindings = { ...wanted.bindings, space, ...holder, inbox: key } as Bindings<ProfileName> & ProfileHolder;
  const permissions = compilePermissions(wanted.profile, bindings);
  const { name } = PROFILES[wanted.profile];
  const jwt = signUser(
    {
      key,
      name,
      account: data.account,
      signer: data.signer,
      permissions,
      holder,
      issuedAtS: Math.floor(now / 1_000),
      expS: exp,
    },
    ports,
  );
  const credentialId = credentialIdOf(jwt);
  const value: EpCred = {
    credentialId,
    credentialKey: key,
    role: wanted.role,
    holderPrincipal: principalOf(holder.owner, holder.actor),
    lifecycleUid: holder.uid,
    sourceChain: sourceChain(wanted.role, wanted.sessionId),
    ...(more.grantedBy ? { grantedBy: more.grantedBy } : {}),
    ...(wanted.runId === undefined ? {} : { runId: wanted.runId }),
    generation: gate.generation,
    state: "active",
    exp: exp * 1_000,
    endpoint,
    processEpoch: gate.processEpoch,
    registrationRevision: gate.registrationRevision,
    nameAuthorityRevision: gate.nameAuthorityRevision,
  };
  return {
    name: wanted.name,
    signed: { jwt, exp },
    row: { key: epCredRows.key({ endpoint, instanceId, credentialId }), value },
  };
}

/** The entry that a minted row is after its commit. */
export const entryOf = ({ row }: Minted, revision: number): Entry<EpCred> => ({ ...row, revision });
