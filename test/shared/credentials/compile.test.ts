import { describe, expect, it } from "vitest";
import { AUDIT_RULES, type Audited, audit } from "../../../shared/credentials/audit.ts";
import { compilePermissions } from "../../../shared/credentials/compile.ts";
import { decodeJwt, type Permissions } from "../../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { PROFILE_NAMES, PROFILES, type ProfileName } from "../../../shared/credentials/profiles.ts";
import { signUser } from "../../../shared/credentials/sign.ts";
import { permissionsOf } from "../../../shared/credentials/user-permissions.ts";
import { provisionedUser, USER_NAMES, USERS } from "../../../shared/credentials/users.ts";
import { CREDENTIAL } from "../../../shared/limits.ts";
import { isPattern } from "../../../shared/patterns.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { AccountNkey, ChannelPattern, type CredentialId, UserNkey } from "../../../shared/tokens.ts";
import { type Case, cases, holder, instanceId, local, person, space } from "../../kit/bindings.ts";

const account = createKeyPair("account");
const accountKey = AccountNkey.parse(account.public);

const sign = ({ profile, holder: of, permissions }: Case): string =>
  signUser(
    {
      key: UserNkey.parse(of.inbox),
      name: PROFILES[profile].name,
      account: accountKey,
      signer: account,
      permissions,
      holder: of,
      issuedAtS: 1_700_000_000,
      expS: 1_700_000_900,
    },
    systemPorts,
  );

/** What the broker would read. */
function decoded(jwt: string): Permissions {
  const { pub, sub, resp } = decodeJwt(jwt).nats as unknown as Permissions;
  return { pub, sub, ...(resp ? { resp } : {}) };
}

const fits = (size: number): boolean =>
  cases(size).every((row) => {
    try {
      return sign(row).length <= CREDENTIAL.maxJwt;
    } catch {
      return false;
    }
  });

/** The longest channel lists with which every credential is still signed. */
const largest = (() => {
  let size = 1;
  while (fits(size + 1)) size += 1;
  return size;
})();

const audited = (row: Case): Audited => ({
  profile: row.profile,
  space,
  account: row.account,
  permissions: decoded(sign(row)),
  row: row.permissions,
});

describe("the matrix", () => {
  it("has a row for every profile, and every row is compiled here", () => {
    expect([...new Set(cases(1).map(({ profile }) => profile))].sort()).toEqual([...PROFILE_NAMES].sort());
  });

  it.each(cases(3).map((row) => [row.profile, row] as const))("compiles %s to sorted, distinct patterns", (_, row) => {
    const { pub, sub } = row.permissions;
    for (const list of [pub.allow, pub.deny, sub.allow, sub.deny]) {
      expect(list).toEqual([...new Set(list)].sort());
      for (const text of list) expect(isPattern(text.split(" ")[0] ?? "")).toBe(true);
    }
    expect(sub.allow).toContain(`_INBOX_${row.holder.inbox}.>`);
  });

  it("compiles equal bindings to equal bytes, whatever the order of lists", () => {
    const of = holder(person, "cli");
    const lists = (names: string[]) => ({
      allowSubscribe: names.map(ChannelPattern.parse),
      allowPublish: names.map(ChannelPattern.parse),
    });
    const one = compilePermissions("agent", { ...of, ...lists(["a", "b"]), spawn: true });
    const other = compilePermissions("agent", { spawn: true, ...lists(["b", "a", "b"]), ...of });
    expect(JSON.stringify(one)).toBe(JSON.stringify(other));
  });

  it("refuses missing, surplus and malformed bindings", () => {
    const of = holder(local, "auth");
    const wild = { ...holder(person, "cli"), actor: "*" as typeof of.actor };
    expect(() => compilePermissions("executor", of as never)).toThrow("internal");
    expect(() => compilePermissions("supervisor", { ...of, instanceId } as never)).toThrow("internal");
    expect(() => compilePermissions("deployer", wild)).toThrow("internal");
    expect(() => compilePermissions("deployer", { ...of, inbox: ">" as typeof of.inbox })).toThrow("internal");
  });

  it("names the streams that the space's settings name", () => {
    const streams = { delivery: "POST", lease: "KV_post_leases" };
    const auth = { ...holder(local, "auth"), account: "space" as const, streams };
    const { allow } = compilePermissions("scan", auth).pub;
    expect(allow).toContain("$JS.API.CONSUMER.CREATE.POST.>");
    expect(allow.join(" ")).not.toContain("DLV");
    const agent = { ...holder(person, "cli"), allowSubscribe: [], allowPublish: [], spawn: false, streams };
    const { pub } = compilePermissions("agent", agent);
    expect(pub.allow).toContain("$JS.API.STREAM.MSG.GET.KV_post_leases");
    expect(pub.deny).toContain("$JS.API.CONSUMER.CREATE.POST");
  });

  it("lets a profile without rows do nothing but hear its own inbox", () => {
    const { pub, sub } = compilePermissions("session-ledger", holder(person, `manager_session_${instanceId}`));
    expect(pub).toEqual({ allow: [], deny: [">"] });
    expect(sub.allow).toHaveLength(1);
  });

  it("compiles every provisioned user of the table", () => {
    for (const name of USER_NAMES) {
      const user = provisionedUser(space, name, createKeyPair("user").public);
      const profile: ProfileName = USERS[name].profile;
      expect(cases(1).map((row) => row.profile)).toContain(profile);
      expect(permissionsOf(user).sub.allow).toContain(`_INBOX_${user.nkey}.>`);
    }
    const exchange = permissionsOf(provisionedUser(space, "exchange", createKeyPair("user").public));
    const custodian = permissionsOf(provisionedUser(space, "custodian", createKeyPair("user").public));
    expect(exchange.pub.allow).toContain(`$JS.API.STREAM.MSG.GET.KV_cotal_records_${space}`);
    expect(custodian.pub.allow.filter((text) => text.startsWith("$JS."))).toEqual([]);
  });
});

describe("signing", () => {
  it("puts identity, times and limits into the claims, and never `nbf`", () => {
    const key = UserNkey.parse(createKeyPair("user").public);
    const of = holder(person, "Cli_X");
    const jwt = signUser(
      {
        key,
        name: `${person}-Cli_X`,
        account: accountKey,
        signer: account,
        permissions: compilePermissions("deployer", of),
        holder: of,
        credential: "root-x" as CredentialId,
        issuedAtS: 10,
        expS: 20,
        connectionTypes: ["STANDARD", "WEBSOCKET"],
      },
      systemPorts,
    );
    const claims = decodeJwt(jwt);
    expect(claims).toMatchObject({ sub: key, iss: account.public, iat: 10, exp: 20, name: `${person}-Cli_X` });
    expect(claims.nbf).toBeUndefined();
    expect(Buffer.from(claims.jti, "base64url")).toHaveLength(16);
    expect(claims.nats).toMatchObject({
      issuer_account: account.public,
      subs: -1,
      data: -1,
      payload: -1,
      allowed_connection_types: ["STANDARD", "WEBSOCKET"],
      tags: [`owner:${person}`, "actor:Cli_X", `principal:${person}.Cli_X`, `uid:${of.uid}`, "credential:root-x"],
    });
  });

  it("gives no two JWTs one id", () => {
    const [row] = cases(1);
    expect(row && decodeJwt(sign(row)).jti).not.toBe(row && decodeJwt(sign(row)).jti);
  });

  it("refuses what the broker would not take", () => {
    const agent = cases(200).find(({ profile }) => profile === "agent");
    expect(agent && (() => sign(agent))).toThrow(expect.objectContaining({ code: "resource-exhausted" }));
  });
});

describe("the audit", () => {
  it.each(cases(largest).map((row) => [row.profile, row] as const))("finds nothing in %s at its largest", (_, row) => {
    expect(audit(audited(row))).toEqual([]);
  });

  const broken = (profile: ProfileName, change: (of: Audited) => Partial<Audited>): number[] => {
    const row = cases(1).find((candidate) => candidate.profile === profile);
    if (!row) throw new Error(`no case of ${profile}`);
    const whole = audited(row);
    const altered = { ...whole, ...change(whole) };
    return [...new Set(audit(altered).map(({ rule }) => rule))];
  };
  /** As if the row itself had it: only the rule in question objects. */
  const grant = (...subjects: string[]) => change("pub", subjects);
  const hear = (...subjects: string[]) => change("sub", subjects);
  const change = (side: "pub" | "sub", subjects: string[]) => (of: Audited) => {
    const add = (to: Permissions): Permissions => ({
      ...to,
      [side]: { allow: [...to[side].allow, ...subjects], deny: to[side].deny.filter((text) => text !== ">") },
    });
    return { permissions: add(of.permissions), row: add(of.row) };
  };

  it.each<[rule: number, why: string, profile: ProfileName, (of: Audited) => Partial<Audited>]>([
    [1, "a whole kind", "supervisor", grant(">")],
    [1, "the whole JetStream API", "work", grant("$JS.API.>")],
    [1, "all buckets", "store", grant("$KV.>")],
    [1, "all objects", "transfer-writer", grant("$O.>")],
    [1, "a star inside a token", "supervisor", grant("cotal.demo.ep.one.auth.x*.y")],
    [1, "a grant that no row has", "run-driver", (of) => ({ permissions: grant("cotal.demo.x")(of).permissions })],
    [1, "a subscription that no row has", "run-driver", (of) => ({ permissions: hear("x")(of).permissions })],
    [
      1,
      "a lost denial",
      "agent",
      (of) => ({ permissions: { ...of.permissions, pub: { ...of.permissions.pub, deny: [] } } }),
    ],
    [
      1,
      "an empty list",
      "session-ledger",
      (of) => ({ permissions: { ...of.permissions, pub: { allow: [], deny: [] } } }),
    ],
    [1, "a right to answer", "operator", (of) => ({ permissions: { ...of.permissions, resp: { max: 1, ttl: 1 } } })],
    [2, "another profile in the authority account", "exchange-store", () => ({ profile: "custodian-system" })],
    [2, "the observation stream", "supervisor", grant("$JS.API.STREAM.INFO.OBS_demo")],
    [3, "a consumer elsewhere", "goal-writer", grant("$JS.API.CONSUMER.CREATE.EPF_demo.x.cotal.demo.epf.x")],
    [3, "a consumer of any name", "agent", grant("$JS.API.CONSUMER.CREATE.CHAT_demo.*.cotal.demo.chat.*.*.x")],
    [3, "a consumer without filter", "run-driver", grant("$JS.API.CONSUMER.CREATE.WFJ_demo.x")],
    [3, "a consumer under a bare wildcard", "run-operator", grant("$JS.API.CONSUMER.CREATE.WFJ_demo.>")],
    [3, "a durable of the old form", "scan", grant("$JS.API.CONSUMER.DURABLE.CREATE.KV_cotal_auth_demo.x")],
    [4, "the class rail without queue", "service", hear("cotal.demo.ep.one.exchange.identify.>")],
    [4, "its own service", "service-serve", grant("cotal.demo.ep.one.auth.actor-grant.local.x.y.*")],
    [5, "writing what it reads raw", "agent", grant("$KV.cotal_channels_demo.x")],
  ])("rule %i objects to %s", (rule, _, profile, alter) => {
    expect(broken(profile, alter)).toContain(rule);
  });

  it("rule 2 objects to any other profile that the authority account signs", () => {
    expect(broken("supervisor", () => ({ account: "authority" }))).toEqual([2]);
  });

  it("has a broken example of every rule", () => {
    expect(Object.keys(AUDIT_RULES)).toEqual(["1", "2", "3", "4", "5"]);
  });
});
