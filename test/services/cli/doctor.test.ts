import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { serverFindings, type Varz } from "../../../services/cli/checks/broker.ts";
import type { Finding } from "../../../services/cli/checks/finding.ts";
import { amendAccount } from "../../../services/offline/jwts.ts";
import { makeSentinel } from "../../../services/offline/provision.ts";
import { loadRoot, signerOf } from "../../../services/offline/root.ts";
import type { NatsBody } from "../../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { type Folder, openFolder } from "../../../shared/secrets/folder.ts";
import { startBroker } from "../../kit/broker.ts";
import { type OidcProvider, startOidcProvider } from "../../kit/idp.ts";
import { startShipped } from "../offline/shipped-broker.ts";
import { mesh } from "./cli.ts";

const HEX = "space.61636d65";
const NOBODY = "nats://127.0.0.1:1";

let provider: OidcProvider;
let parent: string;
let dir: string;
const at = (path: string): string => join(dir, path);
const command = (...argv: string[]) => mesh(...argv, "--state", dir, "--space", "acme");
/** Follows an advice. */
const follow = async (...argv: string[]) => expect(await command(...argv)).toMatchObject({ code: 0 });
/** What is wrong; services are not what is asked about, and without a broker nothing is that takes one. */
async function wrong(servers = NOBODY): Promise<Finding[]> {
  const { out } = await command("doctor", "--json", "--servers", servers);
  const apart = servers === NOBODY ? /^(service|connect) / : /^service /;
  return (JSON.parse(out) as Finding[]).filter(({ ok, check }) => !ok && !apart.test(check));
}

beforeAll(async () => {
  provider = await startOidcProvider("RS256");
});
afterAll(() => provider.stop());
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "doctor-"));
  dir = join(parent, "state");
  const { issuer, audience, jwksUri } = provider.pin;
  await follow("init", "--idp", `${issuer},${audience},${jwksUri},RS256`);
  expect(await wrong()).toEqual([]);
});
afterEach(() => rm(parent, { recursive: true, force: true }));

describe("what doctor finds wrong with the files is right once its advice was followed:", () => {
  it.each<[string, string, string[]]>([
    [`${HEX}/sentinel.creds`, "run init again with the --space of this one, then restart exchange and auth", ["init"]],
    ["broker/broker.conf", "run init again with the --space of this one", ["init"]],
    [`auth/${HEX}/exchange.creds`, "run rotate creds exchange, then", ["rotate", "creds", "exchange"]],
    [`auth/${HEX}/operator.creds`, "run rotate creds operator, then", ["rotate", "creds", "operator"]],
  ])("%s is not there", async (path, advice, remedy) => {
    await rm(at(path));
    const found = await wrong();
    expect(found).toContainEqual({
      check: "file",
      ok: false,
      found: `${path} is not there`,
      do: expect.stringContaining(advice),
    });
    await follow(...remedy);
    expect(await wrong()).toEqual([]);
  });

  it("no provider is pinned", async () => {
    await rm(at(`${HEX}/idp.json`));
    expect(await wrong()).toMatchObject([{ check: "file", do: expect.stringContaining("idp add") }]);
    await follow("idp", "add", provider.pin.issuer, "--audience", "mesh");
    expect(await wrong()).toEqual([]);
  });

  it.each(["service-keys.json", "callout.json", "public.json"])("%s is lost", async (file) => {
    const path = at(`auth/${HEX}/${file}`);
    await rename(path, `${parent}/backup`);
    for (const finding of await wrong()) expect(finding.do).toContain("a backup");
    await rename(`${parent}/backup`, path);
    expect(await wrong()).toEqual([]);
  });

  it.each([
    ["a secret that others may read", `auth/${HEX}/service-keys.json`, 0o640],
    ["a public file that others may write", `${HEX}/space.json`, 0o666],
    ["a folder that others may write", `auth/${HEX}`, 0o777],
  ])("%s", async (_, path, mode) => {
    await chmod(at(path), mode);
    const text = await command("doctor", "--servers", NOBODY);
    const [, bits = "", where = ""] = /chmod (\S+) (\S+)/.exec(text.out + text.err) ?? [];
    expect(where).toBe(at(path));
    await promisify(execFile)("chmod", [bits, where]);
    expect(await wrong()).toEqual([]);
  });
});

describe("what doctor finds wrong with the accounts is right once its advice was followed:", () => {
  const foreign = createKeyPair("account").public;
  const user = createKeyPair("user").public;
  const authorized = (nats: NatsBody, more: object): NatsBody => ({
    ...nats,
    authorization: { ...Object(nats.authorization), ...more },
  });
  const limited = (nats: NatsBody, more: object): NatsBody => ({
    ...nats,
    limits: { ...Object(nats.limits), ...more },
  });

  it.each<[string, Account, (nats: NatsBody) => NatsBody, string]>([
    ["a limit of 0", "space", (nats) => limited(nats, { conn: 0 }), "limits of space"],
    ["a limit left out", "authority", (nats) => limited(nats, { subs: undefined }), "limits of authority"],
    ["no JetStream", "authority", (nats) => limited(nats, { mem_storage: 0, disk_storage: 0 }), "limits of authority"],
    ["JetStream of the system account", "system", (nats) => limited(nats, { disk_storage: -1 }), "limits of system"],
    ["our user not listed", "callout", (nats) => authorized(nats, { auth_users: [user] }), "callout user"],
    ["another user listed", "callout", (nats) => alsoListed(nats, user), "callout bypass"],
    [
      "placing users elsewhere",
      "callout",
      (nats) => authorized(nats, { allowed_accounts: [foreign] }),
      "allowed accounts",
    ],
    ["another curve key", "callout", (nats) => authorized(nats, { xkey: undefined }), "callout encryption"],
  ])("%s", async (_, account, change, check) => {
    await amend(account, change);
    const found = (await wrong()).filter((one) => one.check !== "broker.conf");
    expect(found).toContainEqual(
      expect.objectContaining({ check, do: "run repair-accounts, then nats-server --signal reload" }),
    );
    await follow("repair-accounts");
    expect(await wrong()).toEqual([]);
    expect((await command("repair-accounts")).out).toContain("nothing was wrong");
  });

  const alsoListed = (nats: NatsBody, nkey: string): NatsBody => {
    const { auth_users } = Object(nats.authorization) as { auth_users: string[] };
    return authorized(nats, { auth_users: [...auth_users, nkey] });
  };

  it("somebody else's signing key, which only a flag takes out", async () => {
    await amend("space", (nats) => ({ ...nats, signing_keys: [...(nats.signing_keys as string[]), foreign] }));
    await follow("init");
    expect(await wrong()).toMatchObject([
      {
        check: "who bypasses the callout",
        found: expect.stringContaining(foreign),
        do: expect.stringContaining("--drop-signing-keys"),
      },
    ]);
    await follow("repair-accounts");
    expect(await wrong()).toHaveLength(1);
    await follow("repair-accounts", "--drop-signing-keys");
    expect(await wrong()).toEqual([]);
  });

  it("an account that the broker was not told of", async () => {
    await amend("space", (nats) => ({ ...nats, revocations: { [user]: 1 } }));
    expect(await wrong()).toMatchObject([{ check: "broker.conf", do: expect.stringContaining("run init again") }]);
    await follow("init");
    expect(await wrong()).toEqual([]);
  });

  it("a sentinel under a key that the account has no more", async () => {
    const path = at(`${HEX}/sentinel.creds`);
    const { callout } = await accounts();
    await writeFile(path, makeSentinel({ pub: callout, key: createKeyPair("account") }, systemPorts));
    expect(await wrong()).toMatchObject([{ check: "sentinel", do: expect.stringContaining("remove sentinel.creds") }]);
    await rm(path);
    await follow("init");
    expect(await wrong()).toEqual([]);
  });
});

describe("what doctor finds wrong with a provider is right once its advice was followed:", () => {
  it("a pin that does not name the algorithm", async () => {
    const { issuer, audience, jwksUri = "" } = provider.pin;
    await follow("idp", "add", issuer, "--audience", audience, "--jwks", jwksUri, "--replace");
    const [found, ...others] = await wrong();
    expect(others).toEqual([]);
    expect(found).toMatchObject({ check: `identity provider ${issuer}`, found: expect.stringContaining("RS256") });
    const [, advice = ""] = /^run (.*), then restart exchange$/.exec(found?.do ?? "") ?? [];
    await follow(...advice.split(" "));
    expect(await wrong()).toEqual([]);
  });

  it("keys that cannot be had", async () => {
    const { issuer, audience } = provider.pin;
    await follow("idp", "add", issuer, "--audience", audience, "--jwks", "http://127.0.0.1:1/jwks", "--replace");
    expect(await wrong()).toMatchObject([
      { found: expect.stringContaining("http://127.0.0.1:1/jwks"), do: expect.stringContaining("--replace") },
    ]);
    await follow("idp", "add", issuer, "--audience", audience, "--replace");
    expect(await wrong()).toEqual([]);
  });
});

describe("what doctor finds wrong with a broker is right once its advice was followed:", () => {
  it("each setting that is not the shipped one", async () => {
    const conf = await readFile(at("broker/broker.conf"), "utf8");
    const lax = await startBroker({ config: `${conf}\nmax_control_line: 32768`, jetstream: "sync_interval: 2m" });
    const found = await wrong(lax.url);
    await lax.stop();
    const about = (what: string) => found.find(({ check }) => check.endsWith(`: ${what}`))?.do;
    expect(about("max_control_line")).toContain("max_control_line: 65536");
    expect(about("authorization timeout")).toContain("authorization { timeout: 5 }");
    expect(about("dead connections")).toContain("ping_max: 2");
    expect(about("JetStream")).toContain("sync_interval: always");
    expect(about("consumers of a stream")).toContain("default_max_consumers: 100000");
    const shipped = await startShipped(dir);
    try {
      expect(await wrong(shipped.url)).toEqual([]);
    } finally {
      await shipped.stop();
    }
  });

  it("creds that it does not know yet, and a broker that is not there", async () => {
    const shipped = await startShipped(dir);
    try {
      await follow("rotate", "creds", "operator_callout");
      expect(await wrong(shipped.url)).toMatchObject([
        { check: "connect as operator_callout", do: expect.stringContaining("--signal reload") },
      ]);
      await shipped.reload();
      expect(await wrong(shipped.url)).toEqual([]);
    } finally {
      await shipped.stop();
    }
    const { code, out } = await command("doctor", "--servers", shipped.url);
    expect(code).toBe(1);
    expect(out).toContain("→ start the broker, or name it with --servers");
  });

  it("its age and its clock", () => {
    const now = Date.now();
    const varz: Varz = {
      ...{ server_name: "one", version: "2.12.0", now: new Date(now).toISOString(), max_control_line: 65_536 },
      ...{ auth_timeout: 5, ping_interval: 20e9, ping_max: 2 },
      jetstream: { config: { sync_always: true }, limits: { default_max_consumers: 100_000 } },
    };
    const faults = (said: Varz, ours = now) => serverFindings(said, ours).filter(({ ok }) => !ok);
    expect(faults(varz)).toEqual([]);
    expect(faults({ ...varz, version: "2.11.9" })).toMatchObject([{ do: expect.stringContaining("2.12 or later") }]);
    expect(faults(varz, now + 4_999)).toEqual([]);
    expect(faults(varz, now + 5_000)).toMatchObject([{ do: expect.stringContaining("NTP") }]);
    expect(faults(varz, now - 5_000)).toMatchObject([{ check: "broker one: clock" }]);
  });
});

type Account = "system" | "space" | "callout" | "authority";

async function accounts(): Promise<Record<Account, string>> {
  const root = await loadRoot(await openFolder(dir));
  const { space, callout, authority } = Object(root.spaces).acme;
  return { system: root.system.pub, space: space.pub, callout: callout.pub, authority: authority.pub };
}

async function amend(account: Account, change: (nats: NatsBody) => NatsBody): Promise<void> {
  const folder: Folder = await openFolder(dir);
  const { operator } = await loadRoot(folder);
  await amendAccount(folder, (await accounts())[account], signerOf(operator), systemPorts, change);
}
