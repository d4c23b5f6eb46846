/** One table of requests over NATS and through the gateway: the same answer, the same refusal. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Authority, authority } from "../../shared/authority.ts";
import { authApi } from "../../shared/contracts/auth.ts";
import type { Operation } from "../../shared/contracts/operation.ts";
import { actorsOf } from "../../shared/credentials/roles.ts";
import { AuthorityError } from "../../shared/errors.ts";
import { type ManagerHttp, managerHttp } from "../../shared/manager-http.ts";
import { systemPorts } from "../../shared/ports.ts";
import type { Result } from "../../shared/result.ts";
import { startFace, type TestFace } from "../kit/face.ts";
import { startSpace } from "../kit/space.ts";
import { unchanged } from "../kit/unchanged.ts";
import { createJournals } from "../services/auth/runs/runs.ts";
import { CASES, type Case, enrolledAgent, type Scene } from "./roads.ts";

let scene: Scene;
let face: TestFace;
let nats: Authority;
let http: ManagerHttp;

beforeAll(async () => {
  const gateway = { loopbackPort: 1, publicPort: 2, publicUrl: "https://mesh.example" };
  const space = await startSpace({
    services: ["custodian", "auth", "exchange", "callout"],
    settings: { gateway },
  });
  const person = await space.person("alice", { scope: ["supervise", "run"] });
  const manager = await space.manager(person);
  await createJournals(space);
  const agent = await enrolledAgent({ person, manager });
  scene = { space, person, manager, caller: await person.callerOf(manager), agent };
  face = await startFace(space);
  nats = authority({
    connection: await manager.connection("supervisor"),
    space: space.space,
    caller: { owner: person.owner, actor: actorsOf(manager.instanceId).supervisor, uid: manager.uid },
    inboxPrefix: `_INBOX_${manager.keys.supervisor.public}`,
    name: "manager",
    ports: systemPorts,
  });
  http = managerHttp({
    url: `${face.url}/manager-service-authority`,
    capability: face.capability,
    idpToken: () => person.idToken(),
    ports: systemPorts,
  });
});
afterAll(async () => {
  await face.close();
  await scene.space.stop();
});

type Ask = (args: object, options: { readonly once: true }) => Promise<Result<object>>;

const askOn = (road: Authority | ManagerHttp, { operation }: Case, request: object) =>
  (road[operation] as unknown as Ask)(request, { once: true });

/** Asks on one road with a request of its own; whatever is as in the request is named by its place there. */
async function answerOn(road: Authority | ManagerHttp, of: Case) {
  const request = await of.args(scene);
  const result = await askOn(road, of, request);
  if (result.ok) return { ok: true, data: likened(result.data, placesIn(request)) };
  const { code, message, outcome } = result.error;
  return { ok: false, code, message, outcome };
}

function placesIn(request: object): Map<unknown, string> {
  const places = new Map<unknown, string>();
  const visit = (value: unknown, at: string): void => {
    if (value !== null && typeof value === "object") {
      for (const [name, member] of Object.entries(value)) visit(member, `${at}.${name}`);
    } else if (typeof value === "string" && !places.has(value)) places.set(value, at);
  };
  visit(request, "");
  return places;
}

/** Moments, revisions, and what is drawn afresh: they differ from one request to the next on one road, too. */
const FRESH = new Set(["jwt", "exp", "issuedAt", "expiresAt", "admittedAt", "revokedAt", "revision", "lifecycleUid"]);

function likened(value: unknown, places: Map<unknown, string>, name = ""): unknown {
  if (Array.isArray(value)) return value.map((member) => likened(member, places));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, likened(member, places, key)]));
  }
  return places.get(value) ?? (FRESH.has(name) ? `a ${typeof value}` : value);
}

const titled = (cases: readonly Case[]): [string, Case][] =>
  cases.map((of) => [`${of.operation} ${of.title}: ${of.code ?? "done"}`, of]);

// Together, as one eviction takes longer than all the rest.
it.concurrent.each(titled(CASES))("%s, on both roads", async (_title, of) => {
  const [one, other] = [await answerOn(nats, of), await answerOn(http, of)];
  expect(one).toMatchObject(of.code === undefined ? { ok: true } : { ok: false, code: of.code });
  expect(other).toEqual(one);
});

it("covers every operation that has both roads, and each of them refused", () => {
  const both = Object.entries(authApi as Readonly<Record<string, Operation>>).filter(([, { http: kind }]) => kind);
  const names = both.map(([name]) => name).sort();
  const covered = (of: readonly Case[]) => [...new Set<string>(of.map(({ operation }) => operation))].sort();
  expect(covered(CASES)).toEqual(names);
  expect(covered(CASES.filter(({ code }) => code !== undefined))).toEqual(names);
});

it.each(titled(CASES.filter(({ code }) => code !== undefined)))("%s, and nothing written", async (_title, of) => {
  for (const road of [nats, http]) {
    const request = await of.args(scene);
    await unchanged(scene.space, of.code ?? "internal", async () => {
      const result = await askOn(road, of, request);
      if (result.ok) return;
      const { code, message, outcome, details } = result.error;
      throw new AuthorityError(code, message, { outcome, details });
    });
  }
});
