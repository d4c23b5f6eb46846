/** Sessions as tests open them. */
import { managerSession } from "../../../../shared/contracts/auth/manager/session.ts";
import type { Input, Output } from "../../../../shared/contracts/operation.ts";
import { createKeyPair, type KeyPair } from "../../../../shared/credentials/nkeys.ts";
import { newNonce, systemPorts } from "../../../../shared/ports.ts";
import { type Cred, credRows } from "../../../../shared/rows/credential.ts";
import { type Session, sessionRows } from "../../../../shared/rows/session.ts";
import { CredentialId, SessionId, UserNkey } from "../../../../shared/tokens.ts";
import type { TestManager } from "../../../kit/manager.ts";
import type { Person } from "../../../kit/person.ts";
import type { TestSpace } from "../../../kit/space.ts";
import { rowOf } from "../issuing.ts";

export type SessionArgs = Input<typeof managerSession>;

export const secondsAhead = (seconds: number): number => Math.floor(systemPorts.now() / 1_000) + seconds;

/** A request to issue the serving half again. */
export function reissueArgs(
  of: TestManager,
  sessionId: SessionId,
  exp: number,
  key: KeyPair = createKeyPair("user"),
): SessionArgs {
  return {
    ...of.envelope(),
    kind: "manager-service-authority",
    operation: "session",
    registrationProof: of.declaration(),
    session: {
      id: UserNkey.parse(key.public),
      endpoint: "manager",
      sessionId,
      epoch: of.coordinates.processEpoch,
      exp,
    },
  };
}

/** A request to open a fresh session with that holder. */
export function openArgs(of: TestManager, holder: Person, exp = secondsAhead(3_600), key?: KeyPair) {
  const sessionId = SessionId.parse(newNonce(systemPorts));
  const args = reissueArgs(of, sessionId, exp, key);
  const { owner, actor, uid: lifecycleUid } = holder;
  const session = { ...args.session, holder: { owner, actor, lifecycleUid }, grantSig: `grant-${sessionId}` };
  return { ...args, session };
}

export interface Opened {
  readonly sessionId: SessionId;
  readonly exp: number;
  readonly grantSig: string;
  readonly key: KeyPair;
  readonly serving: Output<typeof managerSession>["credentials"]["sessionServing"];
}

export async function openSession(of: TestManager, holder: Person, exp?: number): Promise<Opened> {
  const key = createKeyPair("user");
  const args = openArgs(of, holder, exp, key);
  const { credentials } = await of.client.call(managerSession, args);
  const { sessionId, exp: until, grantSig } = args.session;
  return { sessionId, exp: until, grantSig, key, serving: credentials.sessionServing };
}

export const sessionRow = (space: TestSpace, sessionId: SessionId) => space.store.read(sessionRows.key({ sessionId }));

export const holderRow = (space: TestSpace, holder: Person, sessionId: SessionId) =>
  space.store.read(credRows.key({ uid: holder.uid, credentialId: CredentialId.parse(`h-${sessionId}`) }));

/** The states of the session, its holder's half and the serving half of that JWT. */
export async function statesOf(
  space: TestSpace,
  of: TestManager,
  holder: Person,
  { sessionId, serving }: Pick<Opened, "sessionId" | "serving">,
): Promise<(Session["state"] | Cred["state"] | undefined)[]> {
  const [session, held, served] = await Promise.all([
    sessionRow(space, sessionId),
    holderRow(space, holder, sessionId),
    rowOf(space, of, serving.jwt),
  ]);
  return [session?.value.state, held?.value.state, served?.value.state];
}
