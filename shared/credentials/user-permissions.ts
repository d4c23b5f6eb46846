/** What each provisioned user may do: the literal profile of its row (identity §1.1). */
import { sha256Hex } from "../canonical.ts";
import type { Actor, Owner, Space, Uid, UserNkey } from "../tokens.ts";
import { compilePermissions } from "./compile.ts";
import type { Permissions } from "./jwt.ts";
import type { Holder } from "./profiles/profile.ts";

const users = {
  exchange: (holder: Holder) => compilePermissions("service", { ...holder, service: "exchange" }),
  custodian: (holder: Holder) => compilePermissions("service", { ...holder, service: "custodian" }),
  operator: (holder: Holder) => compilePermissions("operator", holder),
  platform_host: (holder: Holder) => compilePermissions("platform-host", holder),
  gateway_public: (holder: Holder) => compilePermissions("gateway", holder),
  gateway_loopback: (holder: Holder) => compilePermissions("gateway", holder),
  exchange_store: (holder: Holder) => compilePermissions("exchange-store", holder),
  custodian_system: (holder: Holder) => compilePermissions("custodian-system", holder),
  callout: (holder: Holder) => compilePermissions("callout", holder),
  operator_callout: (holder: Holder) => compilePermissions("operator-callout", holder),
} as const;

export type ProvisionedUser = keyof typeof users;
export const PROVISIONED_USERS = Object.keys(users) as readonly ProvisionedUser[];

/** A provisioned user's uid follows from its nkey (wire §1). */
export const provisionedUid = (key: UserNkey): Uid => sha256Hex(key).slice(0, 26) as Uid;

/** The holder that a provisioned user is: `local.<name>`. */
export const provisionedHolder = (name: ProvisionedUser, space: Space, key: UserNkey): Holder => ({
  space,
  owner: "local" as Owner,
  actor: name as string as Actor,
  uid: provisionedUid(key),
  inbox: key,
});

export const permissionsOfUser = (name: ProvisionedUser, space: Space, key: UserNkey): Permissions =>
  users[name](provisionedHolder(name, space, key));
