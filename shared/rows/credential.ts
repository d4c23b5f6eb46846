/** `cred.<u>.<cid>` and `epcred.<e>.<iid>.<cid>`: one row per credential that may be out there (state §3, §5). */
import Type, { type Static } from "typebox";
import { ROLE_NAMES, type Role } from "../credentials/roles.ts";
import { CredentialId, EndpointLabel, Principal, RunId, Uid, UserNkey } from "../tokens.ts";
import { family, secondsUntil } from "./family.ts";
import { Count, closed, GrantedBy, Ms, oneOf, Text } from "./members.ts";

const common = {
  credentialId: CredentialId.schema,
  credentialKey: Type.Optional(UserNkey.schema),
  role: Type.Unsafe<Role>(oneOf(...ROLE_NAMES)),
  /** What its connections show; this principal is evicted. */
  holderPrincipal: Principal.schema,
  lifecycleUid: Uid.schema,
  sourceChain: Type.Array(Text),
  grantedBy: Type.Optional(GrantedBy),
  runId: Type.Optional(RunId.schema),
  generation: Count,
  state: oneOf("active", "revoked"),
  exp: Ms,
};
const CredRow = closed(common);
export type Cred = Static<typeof CredRow>;

const EpCredRow = closed({
  ...common,
  endpoint: EndpointLabel.schema,
  processEpoch: Count,
  registrationRevision: Count,
  nameAuthorityRevision: Count,
});
export type EpCred = Static<typeof EpCredRow>;

const KEYLESS: readonly Role[] = ["root", "sessionHolder"];
const OF_RUNS: readonly Role[] = ["runDriver", "runMediator"];

const standsTogether = (row: Cred): boolean =>
  KEYLESS.includes(row.role) === (row.credentialKey === undefined) &&
  !(KEYLESS.includes(row.role) && row.grantedBy !== undefined) &&
  OF_RUNS.includes(row.role) === (row.runId !== undefined);

/** No revoked row becomes active again, and nothing but the state moves (state §8.12). */
const admits = (from: Cred | undefined, to: Cred): boolean =>
  from === undefined ? to.state === "active" : from.state === "active" && to.state === "revoked" && from.exp === to.exp;

/** The credential's own remaining life; afterwards absence denies as well. */
const lifetime = (row: Cred, now: number): number => secondsUntil(row.exp, now);

export const credRows = family({
  stream: "auth",
  pattern: "cred.{uid}.{credentialId}",
  parts: { uid: Uid, credentialId: CredentialId },
  schema: CredRow,
  agrees: (row, key) => row.lifecycleUid === key.uid && row.credentialId === key.credentialId && standsTogether(row),
  admits,
  lifetime,
});

export const epCredRows = family({
  stream: "auth",
  pattern: "epcred.{endpoint}.{instanceId}.{credentialId}",
  parts: { endpoint: EndpointLabel, instanceId: Uid, credentialId: CredentialId },
  schema: EpCredRow,
  agrees: (row, key) => row.endpoint === key.endpoint && row.credentialId === key.credentialId && standsTogether(row),
  admits,
  lifetime,
});
