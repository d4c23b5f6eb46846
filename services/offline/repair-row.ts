/**
 * Writes over one row of the authority's stream that nothing else will touch (lifecycles §5): with every `auth` stopped,
 * at exactly the revision that was looked at, to a value that its family admits.
 *
 *     const { before, after, revision } = await repairRow({ stateDir, space, servers, key: "plane", at: 4711, value, ports });
 */

import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { SelfSigned } from "../../shared/credentials/self-signed.ts";
import { AuthorityError } from "../../shared/errors.ts";
import { STORE } from "../../shared/limits.ts";
import { connectUser } from "../../shared/nats/connect.ts";
import { newUid, type Ports } from "../../shared/ports.ts";
import { authorityKey } from "../../shared/rows/authority.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { secretKey } from "../../shared/secrets/store.ts";
import { swap } from "../../shared/store/message.ts";
import { Store } from "../../shared/store/store.ts";
import type { Space } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";

export interface RepairOptions {
  readonly stateDir: string;
  readonly space: Space;
  readonly servers: string | string[];
  readonly tlsRequired?: boolean;
  /** Of the row in the authority's stream, such as `gate.<uid>`. */
  readonly key: string;
  /** Its revision, as it was looked at. */
  readonly at: number;
  /** The JSON of the row. */
  readonly value: Uint8Array;
  readonly ports: Ports;
}

export interface Repaired {
  /** The bytes that stood there, as base64, since they need not be text. */
  readonly before: string;
  readonly after: string;
  readonly revision: number;
}

/** `bad-request` for a key or value that is none, `not-found`, `conflict` where the row stands at another revision. */
export async function repairRow(options: RepairOptions): Promise<Repaired> {
  const { space, servers, tlsRequired = false, at, ports } = options;
  const key = authorityKey(options.key);
  if (key === undefined) throw new AuthorityError("bad-request", "no row of the authority has such a key");
  const value = key.family.decode(key.key, options.value);
  if (value === undefined) throw new AuthorityError("bad-request", "that value is no row of this key");

  const user = await authorityUser(options);
  const connection = await connectUser({
    servers,
    tlsRequired,
    name: "repair-row",
    user: () => user.user(),
    reconnect: false,
  });
  try {
    const store = new Store({ space, ports, connections: { authority: connection } });
    const work = ownWork(ports, STORE.readTimeoutMs * 2);
    const found = await store.inspect(key, work);
    if (found.state === "absent") throw new AuthorityError("not-found", "nothing stands at this key");
    const revision = found.state === "row" ? found.entry.revision : found.revision;
    if (revision !== at)
      throw new AuthorityError("conflict", `the row stands at revision ${revision}: look at that one`);
    const before = await store.next(key.stream, key.key, at, work);
    const message = swap({ key, revision }, value);
    const [written = 0] = await store.commit([message], work);
    return { before: base64(before?.body), after: base64(message.body), revision: written };
  } finally {
    await connection.close();
  }
}

/** A user that we sign with the authority account's key: nobody is asked over the rail. */
async function authorityUser({ stateDir, space, ports }: RepairOptions): Promise<SelfSigned> {
  const store = await directoryStore(stateDir, [secretKey(space, SECRET.serviceKeys.file)]);
  const { authorityAccount } = await loadSecret(store, space, SECRET.serviceKeys);
  return new SelfSigned({
    space,
    service: "auth",
    uid: newUid(ports),
    profile: "store",
    account: authorityAccount.pub,
    signer: keyPairFromSeed(authorityAccount.signingSeed),
    ports,
  });
}

const base64 = (bytes: Uint8Array = new Uint8Array()): string => Buffer.from(bytes).toString("base64");
