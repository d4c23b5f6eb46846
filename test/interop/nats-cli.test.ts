/** `nats micro` with the operator's credentials, as README shows it; its JSON is held to the micro schemas. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SERVICES } from "../../services/service.ts";
import { actorList } from "../../shared/contracts/auth/actors/actor-list.ts";
import { authContracts } from "../../shared/contracts/auth.ts";
import { newNonce, systemPorts } from "../../shared/ports.ts";
import { credsFile } from "../../shared/secrets/keys.ts";
import { secretKey } from "../../shared/secrets/store.ts";
import { RequestId } from "../../shared/tokens.ts";
import { type EndpointStats, shaped } from "../kit/micro.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { findTool, GO_BIN, run } from "./run.ts";

type Operator = "operator" | "operator_callout";

const nats = await findTool("nats", GO_BIN);
let space: TestSpace;
let home: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "nats-cli-"));
  if (nats !== undefined) space = await startSpace({ services: SERVICES });
});
afterAll(async () => {
  await space?.stop();
  await rm(home, { recursive: true, force: true });
});
beforeEach((ctx) => {
  if (nats === undefined) ctx.skip("the nats command line tool is neither in PATH nor in ~/go/bin");
});

/** What `nats … micro <args>` prints. */
async function micro(operator: Operator, ...args: string[]): Promise<string> {
  const creds = join(space.stateDir, secretKey(space.space, credsFile(operator)));
  const { code, stdout, stderr } = await run(
    nats ?? "",
    ["-s", space.broker.url, "--creds", creds, "micro", ...args],
    // None of the contexts of whoever runs this.
    { ms: 20_000, env: { HOME: home, XDG_CONFIG_HOME: home } },
  );
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return stdout;
}

const json = async (operator: Operator, ...args: string[]) => JSON.parse(await micro(operator, ...args, "--json"));

describe("nats micro ls", () => {
  it.each([
    { operator: "operator", services: ["auth", "custodian", "exchange"] },
    { operator: "operator_callout", services: ["callout"] },
  ] as const)("as $operator lists $services", async ({ operator, services }) => {
    const listed = ((await json(operator, "ls")) as unknown[]).map((info) => shaped("INFO", info));
    expect(listed.map(({ name }) => name).sort()).toEqual(services);
    const table = await micro(operator, "ls");
    for (const name of services) expect(table).toContain(` ${name} `);
  });
});

describe("nats micro info auth", () => {
  it("shows every operation with subject, queue, effect, capability and digests", async () => {
    const { endpoints, metadata } = shaped("INFO", (await json("operator", "info", "auth")).info);
    expect(metadata).toMatchObject({ space: space.space, epoch: "0", contract: authContracts.clusterDigest });
    for (const [command, { inputDigest, outputDigest }] of authContracts.pairs) {
      const shown = endpoints.find(({ name }) => name === command);
      // An operation that is declared and not served yet is not shown either.
      if (shown === undefined) continue;
      expect(shown).toMatchObject({
        subject: `cotal.${space.space}.ep.one.auth.${command}.>`,
        queue_group: "auth",
        metadata: { capability: `auth.${command}`, input: inputDigest, output: outputDigest },
      });
    }
    expect(endpoints.map(({ name }) => name)).toEqual(expect.arrayContaining(["actor-list", "describe-instance"]));
    expect(await micro("operator", "info", "auth")).toContain("Service: auth (");
  });
});

describe("nats micro stats auth", () => {
  it("shows what was asked and what was refused", async () => {
    const before = await listing();
    await space.operator.call(actorList, { requestId: RequestId.parse(newNonce(systemPorts)) });
    await expect(space.operator.call(actorList, { requestId: "short" as RequestId })).rejects.toMatchObject({
      code: "bad-request",
    });
    const after = await listing();
    expect(after.num_requests - before.num_requests).toBe(2);
    expect(after.num_errors - before.num_errors).toBe(1);
    expect(after.data.codes["bad-request"]).toBe(1);
    expect(after.last_error).toMatch(/^bad-request: /);
    expect(await micro("operator", "stats", "auth")).toContain("auth Service Statistics");
  });

  async function listing(): Promise<EndpointStats> {
    const [stats] = ((await json("operator", "stats", "auth")) as unknown[]).map((one) => shaped("STATS", one));
    const found = stats?.endpoints.find(({ name }) => name === "actor-list");
    if (!found) throw new Error("no statistics of actor-list");
    return found;
  }
});
