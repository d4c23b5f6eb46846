/** Connections of a mesh under the profiles of the matrix. */
import type { NatsConnection } from "@nats-io/transport-node";
import { compilePermissions } from "../../shared/credentials/compile.ts";
import type { Holder } from "../../shared/credentials/profiles/profile.ts";
import type { Bindings, ProfileName } from "../../shared/credentials/profiles.ts";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { provisionedUser, USERS, type UserName } from "../../shared/credentials/users.ts";
import { systemPorts } from "../../shared/ports.ts";
import { Store } from "../../shared/store/store.ts";
import { Owner, type Triple } from "../../shared/tokens.ts";
import { space } from "./bindings.ts";
import type { Mesh } from "./mesh.ts";
import { type Identity, identity } from "./probe.ts";

const local = Owner.parse("local");

/** A connection under one profile; `bindings` gets the holder, whose key this is. */
export function member<N extends ProfileName>(
  mesh: Mesh,
  profile: N,
  of: Identity,
  bindings: (holder: Holder) => Bindings<N> & Holder,
): Promise<NatsConnection> {
  const bound = bindings(of.holder);
  const inAuthority = profile === "store" || ("account" in bound && bound.account === "authority");
  const permissions = compilePermissions(profile, bound);
  return mesh.connect(inAuthority ? "authority" : "space", of.holder, permissions, profile, of.key);
}

/** A provisioned user, with the triple under which it may publish. */
export async function user(mesh: Mesh, name: UserName): Promise<{ connection: NatsConnection; holder: Triple }> {
  const { key, holder } = identity(local, name);
  const made = provisionedUser(space, name, key.public);
  const own = { ...holder, uid: made.uid };
  return { connection: await mesh.connect(USERS[name].account, own, permissionsOf(made), name, key), holder: own };
}

/** The connections of `auth` beside its serve connection, and the store over them. */
export async function authority(mesh: Mesh): Promise<{
  store: Store;
  connections: Record<"space" | "authority", NatsConnection>;
  scanning: Record<"space" | "authority", NatsConnection>;
}> {
  const auth = () => identity(local, "auth");
  const [work, store, scanSpace, scanAuthority] = await Promise.all([
    member(mesh, "work", auth(), (holder) => ({ ...holder, service: "auth" })),
    member(mesh, "store", auth(), (holder) => ({ ...holder, service: "auth" })),
    member(mesh, "scan", auth(), (holder) => ({ ...holder, account: "space" })),
    member(mesh, "scan", auth(), (holder) => ({ ...holder, account: "authority" })),
  ]);
  const connections = { space: work, authority: store };
  const scanning = { space: scanSpace, authority: scanAuthority };
  return {
    store: new Store({ space, ports: systemPorts, connections, scanConnections: scanning }),
    connections,
    scanning,
  };
}

/** The first message on a subject, once the broker knows of the subscription. */
export async function listen(connection: NatsConnection, subject: string): Promise<{ first(): Promise<string> }> {
  const subscription = connection.subscribe(subject, { max: 1 });
  await connection.flush();
  return {
    async first() {
      for await (const message of subscription) return message.string();
      throw new Error(`nothing on ${subject}`);
    },
  };
}
