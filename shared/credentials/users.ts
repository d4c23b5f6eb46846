/** The users that `init` makes, one fixed table: name, account, profile (identity §1.1). */
import { sha256Hex } from "../canonical.ts";
import { internal } from "../errors.ts";
import { type Actor, Owner, type Space, Uid, UserNkey } from "../tokens.ts";
import type { Permissions } from "./jwt.ts";

/** Where a user may be: the accounts of a space, and the one that all spaces of a broker share. */
export type AccountName = "space" | "authority" | "callout" | "system";

export const USERS = {
  exchange: { account: "space", profile: "service" },
  custodian: { account: "space", profile: "service" },
  operator: { account: "space", profile: "operator" },
  platform_host: { account: "space", profile: "platform-host" },
  gateway_public: { account: "space", profile: "gateway" },
  gateway_loopback: { account: "space", profile: "gateway" },
  exchange_store: { account: "authority", profile: "exchange-store" },
  custodian_system: { account: "system", profile: "custodian-system" },
  callout: { account: "callout", profile: "callout" },
  operator_callout: { account: "callout", profile: "operator-callout" },
} as const satisfies Record<string, { account: AccountName; profile: string }>;

export type UserName = keyof typeof USERS;
export type UserProfile = (typeof USERS)[UserName]["profile"];

export const USER_NAMES = Object.keys(USERS) as UserName[];
/** Those that the callout account admits itself; everyone else there is sent to the callout (pitfalls 24). */
export const CALLOUT_USERS = USER_NAMES.filter((name) => USERS[name].account === "callout");

/** One value per user of the table. */
export function forEveryUser<V>(value: (name: UserName) => V): Record<UserName, V> {
  return Object.fromEntries(USER_NAMES.map((name) => [name, value(name)])) as Record<UserName, V>;
}

export const isUserName = (value: string): value is UserName => Object.hasOwn(USERS, value);

/** One provisioned user of one space: all that its permissions and tags follow from. */
export interface ProvisionedUser {
  readonly name: UserName;
  readonly space: Space;
  readonly account: AccountName;
  readonly profile: UserProfile;
  readonly owner: Owner;
  readonly actor: Actor;
  readonly uid: Uid;
  readonly nkey: UserNkey;
}

/** The permissions of a provisioned user, out of the matrix of state §6. */
export type PermissionsOf = (user: ProvisionedUser) => Permissions;

export function provisionedUser(space: Space, name: UserName, nkey: string): ProvisionedUser {
  if (!UserNkey.is(nkey)) throw internal(`user ${name} has no user nkey`);
  return { name, space, ...USERS[name], owner: LOCAL, actor: actorOf(name), uid: provisionedUid(nkey), nkey };
}

/** A provisioned user's uid follows from its nkey, so whoever knows the key knows the uid (state §5). */
export const provisionedUid = (nkey: string): Uid => Uid.parse(sha256Hex(nkey).slice(0, UID_LENGTH));

const UID_LENGTH = 26;
const LOCAL = Owner.parse("local");
/** Every name of the table is an actor by its form. */
const actorOf = (name: UserName): Actor => name as string as Actor;
