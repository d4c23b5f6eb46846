/** A broker in operator mode with the accounts of one space, and every stream that a profile names. */
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { compilePermissions } from "../../shared/credentials/compile.ts";
import { accountClaims, encodeJwt, operatorClaims, type Permissions } from "../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair } from "../../shared/credentials/nkeys.ts";
import { signUser } from "../../shared/credentials/sign.ts";
import type { AccountName } from "../../shared/credentials/users.ts";
import { connectUser } from "../../shared/nats/connect.ts";
import { systemPorts } from "../../shared/ports.ts";
import { createMissing } from "../../shared/store/shape.ts";
import { AccountNkey, Actor, Owner, type Triple, Uid, UserNkey } from "../../shared/tokens.ts";
import { holder, instanceId, space } from "./bindings.ts";
import { type Broker, startBroker } from "./broker.ts";
import { OUR_STREAMS } from "./store.ts";

const ACCOUNTS = ["space", "authority", "callout", "system"] as const satisfies readonly AccountName[];
const EVERYTHING: Permissions = { pub: { allow: [">"], deny: [] }, sub: { allow: [">"], deny: [] } };

export interface Mesh {
  readonly broker: Broker;
  /** The public key of each account. */
  readonly accounts: Readonly<Record<AccountName, string>>;
  /** The user JWT of that account with exactly these permissions. */
  sign(account: AccountName, holder: Triple, permissions: Permissions, key: KeyPair): string;
  /** A connection under exactly these permissions, with the holder's tags. Closed with the mesh. */
  connect(
    account: AccountName,
    holder: Triple,
    permissions: Permissions,
    name?: string,
    key?: KeyPair,
  ): Promise<NatsConnection>;
  /** A connection that may do everything in the account. */
  root(account: AccountName): Promise<NatsConnection>;
  stop(): Promise<void>;
}

export async function startMesh(): Promise<Mesh> {
  const operator = createKeyPair("operator");
  const keys = Object.fromEntries(ACCOUNTS.map((name) => [name, createKeyPair("account")])) as Record<
    AccountName,
    KeyPair
  >;
  const iat = Math.floor(systemPorts.now() / 1_000);
  const preload = ACCOUNTS.map((name) => {
    const jetstream = name === "system" ? "unset" : name === "callout" ? "none" : "unlimited";
    const claims = accountClaims({ subject: keys[name].public, name, signingKeys: [], jetstream, iat });
    return `${keys[name].public}: ${encodeJwt(claims, operator)}`;
  });
  const operatorJwt = encodeJwt(
    operatorClaims({ subject: operator.public, name: "operator", systemAccount: keys.system.public, iat }),
    operator,
  );
  const broker = await startBroker({
    config: [
      `operator: ${operatorJwt}`,
      `system_account: ${keys.system.public}`,
      "resolver: MEMORY",
      `resolver_preload: { ${preload.join("\n")} }`,
    ].join("\n"),
  });
  const open: NatsConnection[] = [];
  const mesh: Mesh = {
    broker,
    accounts: {
      space: keys.space.public,
      authority: keys.authority.public,
      callout: keys.callout.public,
      system: keys.system.public,
    },
    sign: (account, holder, permissions, key) =>
      signUser(
        {
          key: UserNkey.parse(key.public),
          name: "probe",
          account: AccountNkey.parse(keys[account].public),
          signer: keys[account],
          permissions,
          holder,
          issuedAtS: iat,
        },
        systemPorts,
      ),
    async connect(account, holder, permissions, name = "probe", key = createKeyPair("user")) {
      const jwt = mesh.sign(account, holder, permissions, key);
      const connection = await connectUser({
        servers: broker.url,
        name,
        user: () => ({ jwt, key }),
        reconnect: false,
      });
      open.push(connection);
      return connection;
    },
    root(account) {
      return mesh.connect(account, ROOT, EVERYTHING, "root");
    },
    async stop() {
      await Promise.all(open.map((connection) => connection.close()));
      await broker.stop();
    },
  };
  try {
    await createStreams(mesh);
  } catch (error) {
    await mesh.stop();
    throw error;
  }
  return mesh;
}

const ROOT: Triple = {
  owner: Owner.parse("local"),
  actor: Actor.parse("root"),
  uid: Uid.parse("r".repeat(26)),
};

/** The mesh's own streams, by name and subjects; a manager's transfer bucket among them. */
const MESH_STREAMS: readonly (readonly [name: string, ...subjects: string[]])[] = [
  [`CHAT_${space}`, `cotal.${space}.chat.>`],
  [`DM_${space}`, `cotal.${space}.inst.>`],
  [`TASK_${space}`, `cotal.${space}.svc.>`],
  [`DLV_${space}`, `cotal.${space}.dlv.>`],
  [`WFJ_${space}`, `cotal.${space}.wfj.*`],
  [`EPF_${space}`, `cotal.${space}.epf.>`],
  [`EPW_${space}`, `cotal.${space}.epw.>`],
  [`EPE_${space}`, `cotal.${space}.epe.>`],
  [`EPT_${space}`, `cotal.${space}.ept.>`],
  ...["presence", "channels", "membership", "delivery"].map(
    (bucket) => [`KV_cotal_${bucket}_${space}`, `$KV.cotal_${bucket}_${space}.>`] as const,
  ),
];

/** Ours are made as `auth` makes them, under what it signs for itself. */
async function createStreams(mesh: Mesh): Promise<void> {
  const key = createKeyPair("user");
  const auth = holder(ROOT.owner, "auth", ROOT.uid, key.public);
  const compiled = {
    space: compilePermissions("work", { ...auth, service: "auth" }),
    authority: compilePermissions("store", { ...auth, service: "auth" }),
  };
  const [work, store, inSpace] = await Promise.all([
    mesh.connect("space", auth, compiled.space, "work", key),
    mesh.connect("authority", auth, compiled.authority, "store", key),
    mesh.root("space"),
  ]);
  await createMissing({ space, connection: (account) => (account === "space" ? work : store) }, OUR_STREAMS);
  await createMeshStreams(inSpace);
}

/** The streams that the mesh itself makes, in the account of this connection. */
export async function createMeshStreams(inSpace: NatsConnection): Promise<void> {
  const manager = await jetstreamManager(inSpace);
  const transfer = `cotal_xfer_${space}_${instanceId}`;
  for (const [name, ...subjects] of [
    ...MESH_STREAMS,
    [`OBJ_${transfer}`, `$O.${transfer}.C.>`, `$O.${transfer}.M.>`] as const,
  ]) {
    const rows = name.startsWith("KV_") ? { max_msgs_per_subject: 1 } : {};
    await manager.streams.add({ name, subjects, storage: "file", allow_direct: !name.startsWith("WFJ_"), ...rows });
  }
}
