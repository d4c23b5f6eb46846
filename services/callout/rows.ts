/** Every row that decides on a connect, read together from the leaders (identity §9.2, step 4). */
import type { Bearer } from "../../shared/bearer.ts";
import { acceptedToken } from "../../shared/issued.ts";
import { acceptedRows } from "../../shared/rows/accepted.ts";
import { actorRows } from "../../shared/rows/actor.ts";
import { inboxRows } from "../../shared/rows/connect.ts";
import { credRows } from "../../shared/rows/credential.ts";
import { epGateRows, gateRows } from "../../shared/rows/gate.ts";
import { headRows } from "../../shared/rows/head.ts";
import { sessionRows } from "../../shared/rows/session.ts";
import type { Reader } from "../../shared/store/store.ts";
import {
  type CredentialId,
  MANAGER,
  type Nonce,
  type SessionId,
  splitPrincipal,
  type Uid,
} from "../../shared/tokens.ts";
import type { Work } from "../../shared/work.ts";

export type Rows = Awaited<ReturnType<typeof readRows>>;

export async function readRows(store: Reader, { act }: Bearer, nonce: Nonce, work: Work) {
  const { owner, actor, lifecycleUid: uid } = act;
  const [row, gate, head, root, inbox, session, manager, parent, accepted] = await Promise.all([
    store.read(actorRows.key({ owner, actor }), work),
    store.read(gateRows.key({ uid }), work),
    store.read(headRows.key({ owner, actor }), work),
    store.read(credRows.key({ uid, credentialId: act.credentialId }), work),
    store.read(inboxRows.key({ nonce }), work),
    act.session ? readSession(store, act.session.sessionId, uid, work) : undefined,
    act.managerInstanceId
      ? store.read(epGateRows.key({ endpoint: MANAGER, instanceId: act.managerInstanceId }), work)
      : undefined,
    act.view === "manager-caller" && act.parent
      ? store.read(actorRows.key(splitPrincipal(act.parent)), work)
      : undefined,
    act.view === "manager-caller" ? store.read(acceptedRows.key({ token: acceptedToken(nonce) }), work) : undefined,
  ]);
  return { row, gate, head, root, inbox, session, manager, parent, accepted };
}

/** The session, its holder's credential row, and the gate of the instance that serves it. */
async function readSession(store: Reader, sessionId: SessionId, uid: Uid, work: Work) {
  const credentialId = `h-${sessionId}` as CredentialId;
  const [session, holder] = await Promise.all([
    store.read(sessionRows.key({ sessionId }), work),
    store.read(credRows.key({ uid, credentialId }), work),
  ]);
  const serving =
    session &&
    (await store.read(
      epGateRows.key({ endpoint: session.value.endpoint, instanceId: session.value.serving.instanceId }),
      work,
    ));
  return { session, holder, serving };
}
