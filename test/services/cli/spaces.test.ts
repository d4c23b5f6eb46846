import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Finding } from "../../../services/cli/checks/finding.ts";
import { formatCreds } from "../../../shared/credentials/creds.ts";
import { accountClaims, encodeJwt, operatorClaims, userClaims } from "../../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { type ShippedBroker, startShipped } from "../offline/shipped-broker.ts";
import { mesh } from "./cli.ts";
import { type LiveSpace, serveSpace } from "./live.ts";

const iat = Math.floor(Date.now() / 1_000);
/** What an operator has had for years. */
const former = {
  operator: createKeyPair("operator"),
  system: createKeyPair("account"),
  space: createKeyPair("account"),
  user: createKeyPair("user"),
};

let parent: string;
let state: string[];
let broker: ShippedBroker;
let imported: LiveSpace;
let made: LiveSpace;

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), "spaces-"));
  state = ["--state", join(parent, "state")];
  const dir = join(parent, "exported");
  await exportFormer(dir);
  // Two names that one disk could take for the same folder.
  const spaces = [
    ["mesh", "--loopback-port", "5280", "--import", dir],
    ["Mesh", "--loopback-port", "5281"],
  ];
  for (const [name = "", ...more] of spaces) {
    expect(await mesh("init", "--space", name, ...more, ...state)).toMatchObject({ code: 0, err: "" });
  }
  broker = await startShipped(join(parent, "state"));
  [imported, made] = (await Promise.all(
    ["mesh", "Mesh"].map((name) => serveSpace(join(parent, "state"), name, broker.url)),
  )) as [LiveSpace, LiveSpace];
});
afterAll(async () => {
  await Promise.all([imported, made].map((space) => space?.stop()));
  await broker?.stop();
  await rm(parent, { recursive: true, force: true });
});

async function exportFormer(dir: string): Promise<void> {
  const { operator, system, space } = former;
  const account = (key: typeof space, name: string, jetstream: "unlimited" | "unset") =>
    encodeJwt(accountClaims({ subject: key.public, name, signingKeys: [], jetstream, iat }), operator);
  const systemAccount = system.public;
  const own = encodeJwt(operatorClaims({ subject: operator.public, name: "former", systemAccount, iat }), operator);
  const files = {
    operator: [own, operator],
    system: [account(system, "SYS", "unset"), system],
    space: [account(space, "PRODUCTION", "unlimited"), space],
  } as const;
  await mkdir(dir);
  for (const [name, [jwt, key]] of Object.entries(files)) {
    await writeFile(
      join(dir, `${name}.jwt`),
      `-----BEGIN NATS ${name} JWT-----\n${jwt}\n------END NATS ${name} JWT------\n`,
    );
    await writeFile(join(dir, `${name}.nk`), `${key.seed}\n`);
  }
}

/** With `--json`, in one of the spaces; what it answers, parsed. */
async function json(space: string, ...argv: string[]): Promise<{ code: number; answer: unknown }> {
  const place = [...state, "--space", space, "--servers", broker.url, "--json"];
  const { code, out, err } = await mesh(...argv, ...place);
  return { code, answer: JSON.parse(out || (err.trim().split("\n").at(-1) ?? "null")) };
}

async function granted(of: LiveSpace, subject: string): Promise<void> {
  const lists = ["--scope", "run", "--subscribe", "general", "--publish", "general"];
  expect(await json(of.space, "actor", "grant", await of.ownerOf(subject), "cli", ...lists)).toMatchObject({ code: 0 });
}

const account = async (connection: NatsConnection): Promise<string> =>
  (await connection.request("$SYS.REQ.USER.INFO")).json<{ data: { account: string } }>().data.account;

it("users of an imported account go on as before, beside people who come through the callout", async () => {
  const claims = userClaims({
    subject: former.user.public,
    name: "billing",
    issuerAccount: former.space.public,
    permissions: { pub: { allow: [">"], deny: [] }, sub: { allow: [">"], deny: [] } },
    tags: [],
    iat,
  });
  const billing = await broker.connect(formatCreds(encodeJwt(claims, former.space), former.user.seed));
  await granted(imported, "alice");
  const token = await imported.bearer("alice");
  const alice = await imported.connect(token);
  const owner = await imported.ownerOf("alice");
  const heard: string[] = [];
  billing.subscribe("cotal.mesh.chat.>", { callback: (_, message) => void heard.push(message.subject) });
  await billing.flush();
  alice.publish(`cotal.mesh.chat.${owner}.cli.general`);
  await expect.poll(() => heard).toEqual([`cotal.mesh.chat.${owner}.cli.general`]);
  expect(await account(billing)).toBe(former.space.public);
});

it("two spaces on one broker know nothing of each other", async () => {
  await granted(made, "alice");
  const [here, there] = [await imported.bearer("alice"), await made.bearer("alice")];
  expect(await imported.ownerOf("alice")).not.toBe(await made.ownerOf("alice"));
  await expect(imported.connect(there)).rejects.toMatchObject({ code: "unauthenticated" });
  await expect(made.connect(here)).rejects.toMatchObject({ code: "unauthenticated" });
  const alice = await made.connect(there);
  await alice.flush();
  expect(await json("mesh", "actor", "list")).toMatchObject({ answer: [{ owner: await imported.ownerOf("alice") }] });
  expect(await json("Mesh", "actor", "list")).toMatchObject({ answer: [{ owner: await made.ownerOf("alice") }] });
  const unnamed = await mesh("actor", "list", ...state, "--servers", broker.url);
  expect(unnamed).toMatchObject({ code: 1, err: expect.stringContaining("name one with --space: ") });
});

it("the doctor finds nothing wrong with either", async () => {
  for (const space of ["mesh", "Mesh"]) {
    const { code, answer } = await json(space, "doctor");
    expect((answer as Finding[]).filter(({ ok }) => !ok)).toEqual([]);
    expect(code).toBe(0);
  }
});
