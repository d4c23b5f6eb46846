import { execFile } from "node:child_process";
import { chmod, cp, mkdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findNatsServer } from "../../../services/launch/nats-server.ts";
import { serverConf } from "../../../services/offline/broker-conf.ts";
import { parseCreds } from "../../../shared/credentials/creds.ts";
import { decodeJwt, encodeJwt, identityTags, type Permissions, userClaims } from "../../../shared/credentials/jwt.ts";
import { createKeyPair, keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { open, seal, sharedKey } from "../../../shared/credentials/sealed.ts";
import { permissionsOf } from "../../../shared/credentials/user-permissions.ts";
import { provisionedUid, USER_NAMES, USERS, type UserName } from "../../../shared/credentials/users.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { type CalloutKeys, loadSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { Space } from "../../../shared/tokens.ts";
import { type ShippedBroker, startShipped } from "./shipped-broker.ts";
import { space, type TestState, testState } from "./state.ts";

let state: TestState;
let broker: ShippedBroker | undefined;
beforeEach(async () => {
  state = await testState();
});
afterEach(async () => {
  await broker?.stop();
  broker = undefined;
  await state.remove();
});

const S = "space.64656d6f";
const refusal = (reason: string) =>
  expect.objectContaining({ code: "failed-precondition", reason: expect.stringContaining(reason) });

async function credsOf(name: UserName): Promise<string> {
  if (name !== "callout") return state.text(`auth/${S}/${name}.creds`);
  return (await calloutKeys()).calloutCreds;
}

async function calloutKeys(): Promise<CalloutKeys> {
  return loadSecret(await directoryStore(state.dir), space, SECRET.calloutKeys);
}

async function publicKeys() {
  return loadSecret(await directoryStore(state.dir), space, SECRET.publicKeys);
}

describe("init", () => {
  it("makes every file with its mode", async () => {
    expect(await state.init()).toMatchObject({ created: true, settings: { space, broker: { tlsRequired: false } } });
    const files = await state.files();
    const { accounts } = await publicKeys();
    const system = decodeJwt(await state.text("broker/operator.jwt").then((text) => text.trim())).nats.system_account;
    const modes = Object.fromEntries([...files].map(([path, content]) => [path, content.slice(0, 3)]));
    expect(modes).toEqual({
      "store.id": "600",
      "broker/root.json": "600",
      "broker/broker.conf": "644",
      "broker/operator.jwt": "644",
      [`broker/accounts/${system}.jwt`]: "644",
      ...Object.fromEntries(Object.values(accounts).map((pub) => [`broker/accounts/${pub}.jwt`, "644"])),
      [`${S}/space.json`]: "644",
      [`${S}/sentinel.creds`]: "644",
      [`auth/${S}/service-keys.json`]: "600",
      [`auth/${S}/public.json`]: "644",
      [`auth/${S}/callout.json`]: "600",
      ...Object.fromEntries(
        USER_NAMES.filter((name) => name !== "callout").map((name) => [`auth/${S}/${name}.creds`, "600"]),
      ),
    });
  });

  it("keeps everything, byte for byte, when it runs again", async () => {
    await state.init();
    const before = await state.files();
    expect(await state.init({ settings: { gateway: { loopbackPort: 1 } } })).toMatchObject({
      created: false,
      settings: { gateway: { loopbackPort: 4280 } },
    });
    expect(await state.files()).toEqual(before);
  });

  it("puts seeds of accounts into root.json and nowhere else", async () => {
    await state.init();
    const root = JSON.parse(await state.text("broker/root.json"));
    const seeds: string[] = [
      root.operator.seed,
      root.system.seed,
      ...Object.values(Object(root.spaces.demo)).map((one) => Object(one).seed),
    ];
    expect(seeds).toHaveLength(5);
    for (const [path, content] of await state.files()) {
      if (path !== "broker/root.json") for (const seed of seeds) expect(content).not.toContain(seed);
    }
  });

  it("gives each user the tags by which a sweep attributes it, no expiry and no bearer token", async () => {
    await state.init();
    const { users } = await publicKeys();
    for (const name of USER_NAMES) {
      const claims = decodeJwt(parseCreds(await credsOf(name)).jwt);
      expect(claims).toMatchObject({ sub: users[name], name: `local-${name}` });
      expect(claims.nats.tags).toEqual(identityTags("local", name, provisionedUid(users[name])));
      expect([claims.exp, claims.nbf, claims.nats.bearer_token]).toEqual([undefined, undefined, undefined]);
    }
  });

  it("finishes what a crash left, with the keys that are there", async () => {
    await state.init();
    const before = await state.files();
    const { accounts } = await publicKeys();
    for (const path of [
      `${S}/space.json`,
      `auth/${S}/public.json`,
      `broker/accounts/${accounts.callout}.jwt`,
      "broker/broker.conf",
    ]) {
      await rm(join(state.dir, path));
    }
    expect(await state.init()).toMatchObject({ created: true });
    const after = await state.files();
    for (const [path, content] of before) {
      if (!path.endsWith(".jwt") && path !== "broker/broker.conf") expect(after.get(path)).toBe(content);
    }
    broker = await startShipped(state.dir);
    await broker.connect(await credsOf("operator_callout"));
  });

  it("refuses another secret store before anything is generated", async () => {
    await state.init();
    await rm(join(state.dir, "store.id"));
    await rm(join(state.dir, `auth/${S}/exchange.creds`));
    await expect(state.init()).rejects.toThrowError(refusal("space.json: is of another secret store"));
    expect((await state.files()).has(`auth/${S}/exchange.creds`)).toBe(false);
  });

  it("refuses settings that do not fit before anything is generated", async () => {
    const gateway = { loopbackPort: 1, publicUrl: "https://mesh.example" };
    await expect(state.init({ settings: { gateway } })).rejects.toThrowError(
      refusal("/gateway/publicUrl needs publicPort"),
    );
    expect([...(await state.files()).keys()]).toEqual(["store.id"]);
  });

  it("writes pins where there are none, and keeps those that are there", async () => {
    const pin = { url: "https://a", issuer: "https://a", audience: "mesh", jwksUri: "https://a/jwks" };
    await state.init();
    await state.init({ pins: [pin] });
    await state.init({ pins: [{ ...pin, issuer: "https://b" }] });
    expect(JSON.parse(await state.text(`${S}/idp.json`))).toEqual({ ver: 1, pins: [pin] });
  });

  it.each<[string, () => Promise<unknown>, string]>([
    [
      "secrets that others may read",
      () => chmod(join(state.dir, `auth/${S}/service-keys.json`), 0o644),
      "service-keys.json: has mode 0644",
    ],
    [
      "root seeds that others may read",
      () => chmod(join(state.dir, "broker/root.json"), 0o640),
      "root.json: has mode 0640",
    ],
    ["a state folder that others may enter", () => chmod(state.dir, 0o755), "state: has mode 0755"],
    [
      "an operator's JWT reached through a link",
      () => linked("broker/operator.jwt"),
      "operator.jwt: is a symbolic link",
    ],
    ["a folder of secrets reached through a link", () => linked("auth"), "auth: is a symbolic link"],
  ])("refuses to go on with %s", async (_what, spoil, why) => {
    await state.init();
    await rm(join(state.dir, `${S}/space.json`)); // so that everything is read again
    await spoil();
    await expect(state.init()).rejects.toThrowError(refusal(why));
    await chmod(state.dir, 0o700);
  });

  async function linked(path: string): Promise<void> {
    await rename(join(state.dir, path), join(state.dir, "moved"));
    await symlink(join(state.dir, "moved"), join(state.dir, path));
  }
});

describe("several spaces of one state", () => {
  const other = Space.parse("Demo");

  it("are all known to the broker", async () => {
    await state.init();
    await state.init({ space: other });
    expect((await state.text("broker/broker.conf")).match(/^ {2}A[A-Z2-7]{55}: /gm)).toHaveLength(7);
    broker = await startShipped(state.dir);
    await broker.connect(await state.text(`auth/${S}/exchange.creds`));
    await broker.connect(await state.text("auth/space.44656d6f/custodian_system.creds"));
  });

  it("refuse where an account of one is missing", async () => {
    await state.init();
    const { accounts } = await publicKeys();
    await rm(join(state.dir, `broker/accounts/${accounts.authority}.jwt`));
    await expect(state.init({ space: other })).rejects.toThrowError(refusal(`${accounts.authority}.jwt: is not there`));
    await rm(join(state.dir, `auth/${S}/public.json`));
    await expect(state.init({ space: other })).rejects.toThrowError(refusal("public.json: is not there"));
  });

  it("need root.json for a new one, and none for those that are there", async () => {
    await state.init();
    await rename(join(state.dir, "broker/root.json"), join(state.parent, "root.json"));
    await state.init();
    await expect(state.init({ space: other })).rejects.toThrowError(refusal("root.json: is not there: bring it back"));
    await rename(join(state.parent, "root.json"), join(state.dir, "broker/root.json"));
    await state.init({ space: other });
  });
});

describe("a broker on the shipped configuration", () => {
  it("admits every provisioned user under the matrix, and none that it was not told of", async () => {
    await state.init({ permissionsOf });
    broker = await startShipped(state.dir);
    for (const name of USER_NAMES) await broker.connect(await credsOf(name));
    const stranger = createKeyPair("user");
    const { jwt } = parseCreds(await credsOf("exchange"));
    await expect(broker.connect(credsText(jwt, stranger.seed))).rejects.toThrow();
  });

  it("puts each into its account, JetStream in the two that have it", async () => {
    await state.init();
    broker = await startShipped(state.dir);
    const { accounts } = await publicKeys();
    const system = JSON.parse(await state.text("broker/root.json")).system.pub;
    for (const name of USER_NAMES) {
      const connection = await broker.connect(await credsOf(name));
      const { data } = (await connection.request("$SYS.REQ.USER.INFO")).json<{ data: { account: string } }>();
      const { account } = USERS[name];
      expect(data.account).toBe({ ...accounts, system }[account]);
      if (account === "system") continue;
      const js = (await connection.request("$JS.API.INFO")).json<{ error?: { err_code: number }; limits?: object }>();
      expect([name, js.error?.err_code]).toEqual([name, account === "callout" ? 10039 : undefined]);
    }
  });

  it("sends who is not listed in the callout account to the callout, sealed, and admits whom that names", async () => {
    await state.init({ permissionsOf: (user) => (user.name === "callout" ? calloutRights : { ...none }) });
    broker = await startShipped(state.dir);
    const keys = await calloutKeys();
    const { dataAccount } = await loadSecret(await directoryStore(state.dir), space, SECRET.serviceKeys);
    const service = await broker.connect(keys.calloutCreds);
    const seen: { name: string; token: string }[] = [];
    service.subscribe("$SYS.REQ.USER.AUTH", {
      callback: (_error, message) => {
        const xkey = sharedKey(keyPairFromSeed(keys.xkey.seed), message.headers?.get("Nats-Server-Xkey") ?? "");
        const request = decodeJwt(Buffer.from(open(xkey, message.data) ?? []).toString());
        const { server_id, user_nkey, connect_opts } = Object(request.nats);
        seen.push({ name: connect_opts.name, token: connect_opts.auth_token });
        const user = userClaims({
          subject: user_nkey,
          name: "u_x-alice",
          issuerAccount: dataAccount.pub,
          permissions: {
            pub: { allow: ["$SYS.REQ.USER.INFO"], deny: [] },
            sub: { allow: [`_INBOX_${connect_opts.name}.>`], deny: [] },
          },
          tags: [],
          iat: seconds(),
          exp: seconds() + 60,
        });
        const nats = {
          type: "authorization_response",
          version: 2,
          issuer_account: keys.account.pub,
          jwt: encodeJwt(user, keyPairFromSeed(dataAccount.signingSeed)),
        } as const;
        const signing = keyPairFromSeed(keys.account.signingSeed);
        const answer = encodeJwt({ sub: user_nkey, aud: server_id.id, iat: seconds(), nats }, signing);
        message.respond(seal(xkey, Buffer.from(answer), systemPorts.random(24)));
      },
    });
    await service.flush();

    const sentinel = await state.text(`${S}/sentinel.creds`);
    const nonce = "a".repeat(22);
    const client = await broker.connect(sentinel, { token: "bearer", name: nonce, inboxPrefix: `_INBOX_${nonce}` });
    const { data } = (await client.request("$SYS.REQ.USER.INFO")).json<{ data: { account: string } }>();
    expect(data.account).toBe(dataAccount.pub);

    const unlisted = createKeyPair("user");
    const permissions = { pub: { allow: [">"], deny: [] }, sub: { allow: [">"], deny: [] } };
    const claims = {
      subject: unlisted.public,
      name: "x",
      issuerAccount: keys.account.pub,
      permissions,
      tags: [],
      iat: seconds(),
    };
    const jwt = encodeJwt(userClaims(claims), keyPairFromSeed(keys.account.signingSeed));
    await broker.connect(credsText(jwt, unlisted.seed), { name: "unlisted" });
    await broker.connect(await credsOf("operator_callout"), { name: "listed" });
    expect(seen).toEqual([
      { name: nonce, token: "bearer" },
      { name: "unlisted", token: undefined },
    ]);
  });

  it("is valid where it lies, beside the state", async () => {
    await state.init();
    const shipped = new URL("../../../nats-server.conf", import.meta.url).pathname;
    await mkdir(join(state.parent, "place"));
    await cp(shipped, join(state.parent, "place/nats-server.conf"));
    await cp(state.dir, join(state.parent, "place/state"), { recursive: true });
    const { path } = await findNatsServer();
    const { stderr } = await promisify(execFile)(path, ["-t", "-c", "place/nats-server.conf"], { cwd: state.parent });
    expect(stderr).toContain("is valid");
    expect(await serverConf(state.dir)).toBe(join(state.dir, "broker/nats-server.conf"));
    const copy = await state.text("broker/nats-server.conf");
    expect(copy).toContain('\ninclude "broker.conf"\n');
    expect(copy).toContain(`store_dir: "${join(state.dir, "broker")}"`);
  });
});

const none: Permissions = { pub: { allow: [], deny: [] }, sub: { allow: [], deny: [] } };
const calloutRights: Permissions = {
  pub: { allow: ["$SYS._INBOX.>"], deny: [] },
  sub: { allow: ["$SYS.REQ.USER.AUTH"], deny: [] },
};

const seconds = () => Math.floor(Date.now() / 1_000);
const credsText = (jwt: string, seed: string) =>
  `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
