/** A connection as the provisioned `operator`, and the calls made through it. */
import type { NatsConnection } from "@nats-io/nats-core";
import { AuthorityClient } from "../../shared/client.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { provisionedUser, type UserName } from "../../shared/credentials/users.ts";
import { connectUser } from "../../shared/nats/connect.ts";
import { systemPorts } from "../../shared/ports.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { credsFile, loadCreds } from "../../shared/secrets/keys.ts";
import { type SpaceSettings, spaceFiles } from "../../shared/secrets/settings.ts";
import { chooseSpace } from "../../shared/secrets/spaces.ts";
import { secretKey } from "../../shared/secrets/store.ts";
import type { Space, Triple } from "../../shared/tokens.ts";

/** Options that every command has. */
export interface Globals {
  readonly state: string;
  readonly space?: string;
  readonly servers?: string;
  readonly json: boolean;
}

/** A state folder and one space in it. */
export async function placeOf({
  state,
  space: named,
}: Globals): Promise<{ stateDir: string; space: Space; settings: SpaceSettings }> {
  const folder = await openFolder(state);
  const space = await chooseSpace(folder, named);
  const { identity } = await directoryStore(folder.path, []);
  return { stateDir: folder.path, space, settings: await spaceFiles(folder, space).settings(identity) };
}

/** A connection as one provisioned user. */
export async function connectAs(
  globals: Globals,
  name: Exclude<UserName, "callout">,
): Promise<{ connection: NatsConnection; inboxPrefix: string; space: Space; caller: Triple }> {
  const { stateDir, space, settings } = await placeOf(globals);
  const store = await directoryStore(stateDir, [secretKey(space, credsFile(name))]);
  const creds = await loadCreds(store, space, name);
  const key = keyPairFromSeed(creds.seed);
  const connection = await connectUser({
    servers: globals.servers?.split(",") ?? settings.broker.advertised,
    tlsRequired: settings.broker.tlsRequired,
    name: "mesh-authority",
    user: () => ({ jwt: creds.jwt, key }),
    reconnect: false,
  });
  const { owner, actor, uid } = provisionedUser(space, name, key.public);
  return { connection, inboxPrefix: `_INBOX_${key.public}`, space, caller: { owner, actor, uid } };
}

/** Connects as the operator, does the work, disconnects. */
export async function asOperator<T>(globals: Globals, work: (client: AuthorityClient) => Promise<T>): Promise<T> {
  const parts = await connectAs(globals, "operator");
  try {
    return await work(new AuthorityClient({ ...parts, name: "mesh-authority", ports: systemPorts }));
  } finally {
    await parts.connection.close();
  }
}
