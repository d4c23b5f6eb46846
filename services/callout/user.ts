/** The user that a view becomes: its profile's permissions under the principal's name (identity §9.2, §9.3). */
import type { Bearer } from "../../shared/bearer.ts";
import { compilePermissions } from "../../shared/credentials/compile.ts";
import type { Permissions } from "../../shared/credentials/jwt.ts";
import type { KeyPair } from "../../shared/credentials/nkeys.ts";
import type { Holder, MeshStreams } from "../../shared/credentials/profiles/profile.ts";
import { signUser } from "../../shared/credentials/sign.ts";
import { internal } from "../../shared/errors.ts";
import { acceptedToken, ceilingOf } from "../../shared/issued.ts";
import { newGeneration, type Ports } from "../../shared/ports.ts";
import type { Actor } from "../../shared/rows/actor.ts";
import type { Ceiling, Ref } from "../../shared/rows/issued.ts";
import { type AccountNkey, dashForm, type Nonce, type Space, type UserNkey } from "../../shared/tokens.ts";
import type { Rows } from "./rows.ts";

/** The data account and its signing key. */
export interface UserSigner {
  readonly space: Space;
  readonly account: AccountNkey;
  readonly signing: KeyPair;
  readonly streams?: MeshStreams;
}

export interface ConnectingUser {
  readonly key: UserNkey;
  readonly bearer: Bearer;
  readonly nonce: Nonce;
  readonly rows: Rows;
}

export interface SignedUser {
  readonly jwt: string;
  /** Present where the connection is issued: what must be recorded first. */
  readonly issued?: { readonly ref: Ref; readonly permissions: Ceiling };
}

const CONNECTION_TYPES = ["STANDARD", "WEBSOCKET"];

/** `resource-exhausted` over 16 KiB. */
export function userOf(signer: UserSigner, user: ConnectingUser, ports: Ports): SignedUser {
  const { bearer, nonce, rows } = user;
  const { owner, actor, lifecycleUid: uid, credentialId } = bearer.act;
  const row = rows.row?.value;
  if (!row) throw internal("permissions for an actor without row");
  const holder: Holder = { space: signer.space, owner, actor, uid, inbox: nonce };
  const ref = isIssued(bearer, row, rows)
    ? (rows.accepted?.value.ref ?? { space: signer.space, owner, actor, uid, generation: newGeneration(ports) })
    : undefined;
  const permissions = permissionsOf(bearer, row, holder, signer.streams, ref);
  const jwt = signUser(
    {
      key: user.key,
      name: dashForm(owner, actor),
      account: signer.account,
      signer: signer.signing,
      permissions,
      holder,
      credential: credentialId,
      issuedAtS: Math.floor(ports.now() / 1_000),
      expS: bearer.exp,
      connectionTypes: CONNECTION_TYPES,
    },
    ports,
  );
  return { jwt, ...(ref ? { issued: { ref, permissions: ceilingOf(permissions) } } : {}) };
}

/** An interactive actor's `manager-caller`, or a managed one's where it and its direct parent hold `run` (identity §9.3). */
function isIssued({ act }: Bearer, row: Actor, { parent }: Rows): boolean {
  if (act.view !== "manager-caller") return false;
  if (row.kind === "interactive") return true;
  return holds(row, "run") && parent?.value.state === "active" && holds(parent.value, "run");
}

const holds = (row: Actor, scope: "run" | "spawn"): boolean => row.scope.some((held) => held === scope);

function permissionsOf(
  { act }: Bearer,
  row: Actor,
  holder: Holder,
  streams: MeshStreams | undefined,
  ref: Ref | undefined,
): Permissions {
  const { inbox } = holder;
  const named = streams ? { streams } : {};
  switch (act.view) {
    case undefined: {
      const { allowSubscribe, allowPublish, role } = row;
      const lists = { allowSubscribe, allowPublish, spawn: holds(row, "spawn") };
      return compilePermissions("agent", { ...holder, ...named, ...lists, ...(role === undefined ? {} : { role }) });
    }
    case "admin":
      return compilePermissions("admin", { ...holder, ...named });
    case "manager-caller":
      return compilePermissions("manager-caller", {
        ...holder,
        instanceId: paired(act.managerInstanceId),
        ...(ref ? { issued: { generation: ref.generation, token: acceptedToken(inbox as Nonce) } } : {}),
      });
    case "session-caller": {
      const { endpoint, sessionId, epoch } = paired(act.session);
      return compilePermissions("session-caller", { ...holder, endpoint, sessionId, epoch });
    }
    case "transfer-writer":
      return compilePermissions("transfer-writer", { ...holder, ...paired(act.transferWriter) });
    case "channel-writer":
    case "channel-purger":
    case "purger":
    case "deployer":
      return compilePermissions(act.view, holder);
    case "manager-service":
      throw internal("no bearer bears manager-service");
  }
}

/** A valid bearer has the claim that its view pairs with. */
function paired<T>(claim: T | undefined): T {
  if (claim === undefined) throw internal("a view without its claim");
  return claim;
}
