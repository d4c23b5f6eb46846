/**
 * The stream in which runs keep their journals. In a real space the mesh makes it; no service of ours may (state §1).
 * The launcher makes it for a development space, as a user that the data account's root signs for this once.
 */
import { encodeJwt, identityTags, userClaims } from "../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { provisionedUid } from "../../shared/credentials/users.ts";
import { unavailable } from "../../shared/errors.ts";
import { connectUser } from "../../shared/nats/connect.ts";
import type { Ports } from "../../shared/ports.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { askApi, BROKER, describe } from "../../shared/store/api.ts";
import { placeOf, shapeOf } from "../../shared/store/streams.ts";
import { Actor, Owner, type Space, UserNkey } from "../../shared/tokens.ts";
import { loadRoot, signerOf } from "../offline/root.ts";

const LIFE_S = 60;
const TIMEOUT_MS = 5_000;

export async function makeJournalStream(stateDir: string, space: Space, servers: string, ports: Ports): Promise<void> {
  const account = (await loadRoot(await openFolder(stateDir))).spaces[space]?.space;
  if (!account) throw unavailable(`no account of space ${space} in ${stateDir}`);
  const { name } = placeOf("journal", space);
  const key = createKeyPair("user", ports);
  const inbox = `_INBOX_${key.public}.>`;
  const now = Math.floor(ports.now() / 1_000);
  const uid = provisionedUid(UserNkey.parse(key.public));
  const claims = userClaims({
    subject: key.public,
    name: "launcher",
    issuerAccount: account.pub,
    permissions: { pub: { allow: [`$JS.API.STREAM.CREATE.${name}`], deny: [] }, sub: { allow: [inbox], deny: [] } },
    tags: identityTags(Owner.parse("local"), Actor.parse("launcher"), uid),
    iat: now,
    exp: now + LIFE_S,
  });
  const user = { jwt: encodeJwt(claims, signerOf(account), ports), key };
  const connection = await connectUser({ servers, name: "launcher", user: () => user, reconnect: false });
  try {
    const made = await askApi<object>(
      connection,
      `STREAM.CREATE.${name}`,
      { name, ...shapeOf("journal", space), ...FREE },
      TIMEOUT_MS,
    );
    if (made.error && made.error.err_code !== BROKER.streamNameInUse)
      throw unavailable(`${name}: ${describe(made.error)}`);
  } finally {
    await connection.close();
  }
}

/** What the shape of a journal leaves open. */
const FREE = { allow_atomic: true, deny_delete: true, deny_purge: true } as const;
