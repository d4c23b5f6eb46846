/** What each provisioned user may do: the profile of its row in the table of users (identity §1.1). */
import { compilePermissions } from "./compile.ts";
import type { Permissions } from "./jwt.ts";
import type { Holder } from "./profiles/profile.ts";
import type { ProvisionedUser } from "./users.ts";

/** A `PermissionsOf`. */
export function permissionsOf(user: ProvisionedUser): Permissions {
  const { name, profile, space, owner, actor, uid } = user;
  const holder: Holder = { space, owner, actor, uid, inbox: user.nkey };
  if (profile !== "service") return compilePermissions(profile, holder);
  return compilePermissions(profile, { ...holder, service: name === "exchange" ? "exchange" : "custodian" });
}
