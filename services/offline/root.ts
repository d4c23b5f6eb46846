/** `broker/root.json`: the seeds of the operator and of every account; no running service reads it (identity §1.1). */
import Type, { type Static } from "typebox";
import {
  decodeSeed,
  isPublicKey,
  type KeyKind,
  type KeyPair,
  keyPairFromSeed,
} from "../../shared/credentials/nkeys.ts";
import { document, refused } from "../../shared/secrets/document.ts";
import type { Folder } from "../../shared/secrets/folder.ts";
import { AccountNkey } from "../../shared/tokens.ts";

const closed = { additionalProperties: false } as const;
const Seed = Type.String({ pattern: "^S[A-Z2-7]{57}$" });
/** Where a root was imported, the seed may be of a signing key. */
const Account = Type.Object({ pub: AccountNkey.schema, seed: Seed }, closed);

const Root = Type.Object(
  {
    ver: Type.Literal(1),
    operator: Type.Object({ pub: Type.String({ pattern: "^O[A-Z2-7]{55}$" }), seed: Seed }, closed),
    system: Account,
    /** By the name of the space. */
    spaces: Type.Record(
      Type.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" }),
      Type.Object({ space: Account, callout: Account, authority: Account }, closed),
      closed,
    ),
  },
  closed,
);
export type Root = Static<typeof Root>;

const rootDocument = document(Root, ({ operator, system, spaces }) => {
  const fault = (path: string, kind: KeyKind, { pub, seed }: { pub: string; seed: string }) =>
    isPublicKey(pub, kind) && decodeSeed(seed)?.kind === kind ? undefined : `${path} is no ${kind}`;
  return (
    fault("/operator", "operator", operator) ??
    fault("/system", "account", system) ??
    Object.entries(spaces)
      .flatMap(([space, accounts]) =>
        Object.entries(accounts).map(([name, account]) => fault(`/spaces/${space}/${name}`, "account", account)),
      )
      .find((one) => one !== undefined)
  );
});

const ROOT_FILE = "broker/root.json";

/** Undefined where it is kept elsewhere, or not made yet. */
export async function readRoot(folder: Folder): Promise<Root | undefined> {
  const bytes = await folder.read(ROOT_FILE, "secret");
  return bytes && rootDocument.decode(`${folder.path}/${ROOT_FILE}`, bytes);
}

export async function loadRoot(folder: Folder): Promise<Root> {
  const root = await readRoot(folder);
  if (root === undefined)
    throw refused(`${folder.path}/${ROOT_FILE}`, "is not there: bring it back from where it is kept");
  return root;
}

export async function writeRoot(folder: Folder, root: Root): Promise<void> {
  await folder.replace(ROOT_FILE, rootDocument.encode(root), "secret");
}

/** The key that signs for an operator or account: its own, or a signing key that was imported. */
export const signerOf = ({ seed }: { seed: string }): KeyPair => keyPairFromSeed(seed);
