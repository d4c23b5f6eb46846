/** A provisioned user counts only under the uid that follows from its key in `public.json` (identity §1.1). */
import { isUserName, provisionedUid } from "../../shared/credentials/users.ts";
import { unavailable } from "../../shared/errors.ts";
import { HOST } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";
import { loadSecret, type PublicKeys, SECRET } from "../../shared/secrets/keys.ts";
import type { SecretStore } from "../../shared/secrets/store.ts";
import type { Space } from "../../shared/tokens.ts";
import type { ProvisionedUsers } from "./road.ts";

/** The file is read again for another uid, at most every 5 s: `rotate` replaces a user while services run. */
export class PublishedUsers implements ProvisionedUsers {
  readonly #secrets: Pick<SecretStore, "get">;
  readonly #space: Space;
  readonly #ports: Pick<Ports, "monotonic">;
  #users: PublicKeys["users"];
  #readAt: number;
  #reading: Promise<void> | undefined;

  private constructor(
    secrets: Pick<SecretStore, "get">,
    space: Space,
    ports: Pick<Ports, "monotonic">,
    users: PublicKeys["users"],
  ) {
    this.#secrets = secrets;
    this.#space = space;
    this.#ports = ports;
    this.#users = users;
    this.#readAt = ports.monotonic();
  }

  static async load(
    secrets: Pick<SecretStore, "get">,
    space: Space,
    ports: Pick<Ports, "monotonic">,
  ): Promise<PublishedUsers> {
    return new PublishedUsers(secrets, space, ports, (await loadSecret(secrets, space, SECRET.publicKeys)).users);
  }

  admits(name: string, uid: string): boolean | Promise<boolean> {
    if (!isUserName(name) || this.#fits(name, uid)) return true;
    if (!this.#reading && this.#ports.monotonic() - this.#readAt < HOST.usersMs) return false;
    return this.#again().then(() => this.#fits(name, uid));
  }

  #fits(name: keyof PublicKeys["users"], uid: string): boolean {
    return provisionedUid(this.#users[name]) === uid;
  }

  #again(): Promise<void> {
    this.#readAt = this.#ports.monotonic();
    this.#reading ??= loadSecret(this.#secrets, this.#space, SECRET.publicKeys)
      .then(({ users }) => {
        this.#users = users;
      })
      .catch((cause: unknown) => {
        throw unavailable("public.json cannot be read", cause);
      })
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }
}
