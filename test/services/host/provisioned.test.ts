import { describe, expect, it } from "vitest";
import { PublishedUsers } from "../../../services/host/provisioned.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { forEveryUser, provisionedUid } from "../../../shared/credentials/users.ts";
import { type PublicKeys, SECRET } from "../../../shared/secrets/keys.ts";
import { AccountNkey, Space, UserNkey } from "../../../shared/tokens.ts";
import { testPorts } from "../../kit/clock.ts";

const space = Space.parse("demo");
const account = () => AccountNkey.parse(createKeyPair("account").public);
const user = () => UserNkey.parse(createKeyPair("user").public);
const fresh = (): PublicKeys => ({
  ver: 1,
  accounts: { space: account(), callout: account(), authority: account() },
  users: forEveryUser(user),
});

function published() {
  let content: PublicKeys | undefined = fresh();
  let reads = 0;
  const secrets = {
    async get() {
      reads += 1;
      return content && SECRET.publicKeys.document.encode(content);
    },
  };
  return {
    secrets,
    reads: () => reads,
    uidOf: (name: keyof PublicKeys["users"]) => provisionedUid(content?.users[name] ?? ""),
    rotate(name: keyof PublicKeys["users"]) {
      if (content) content = { ...content, users: { ...content.users, [name]: user() } };
    },
    remove() {
      content = undefined;
    },
  };
}

describe("provisioned users", () => {
  it("count under the uid of their key alone, and everybody else is none of them", async () => {
    const { secrets, uidOf, reads } = published();
    const users = await PublishedUsers.load(secrets, space, testPorts());
    expect(users.admits("operator", uidOf("operator"))).toBe(true);
    expect(users.admits("operator", uidOf("exchange"))).toBe(false);
    expect(users.admits("auth", "anything")).toBe(true);
    expect(users.admits("__proto__", "anything")).toBe(true);
    expect(reads()).toBe(1);
  });

  it("are read again for another uid, at most every 5 s", async () => {
    const { secrets, uidOf, rotate, reads } = published();
    const ports = testPorts();
    const users = await PublishedUsers.load(secrets, space, ports);
    const former = uidOf("operator");
    rotate("operator");
    expect(await users.admits("operator", uidOf("operator"))).toBe(false);
    ports.advance(5_000);
    const asked = Array.from({ length: 10 }, () => users.admits("operator", uidOf("operator")));
    expect(await Promise.all(asked)).toEqual(Array(10).fill(true));
    expect(await users.admits("operator", former)).toBe(false);
    expect(reads()).toBe(2);
  });

  it("are unavailable while they cannot be read again", async () => {
    const { secrets, rotate, uidOf, remove } = published();
    const ports = testPorts();
    const users = await PublishedUsers.load(secrets, space, ports);
    rotate("operator");
    const next = uidOf("operator");
    remove();
    ports.advance(5_000);
    await expect(users.admits("operator", next)).rejects.toMatchObject({ code: "unavailable" });
  });
});
