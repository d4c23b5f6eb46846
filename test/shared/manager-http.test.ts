import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { managerScanGoals } from "../../shared/contracts/auth/agents/scan-goals.ts";
import type { managerPrepare } from "../../shared/contracts/auth/manager/prepare.ts";
import type { Input } from "../../shared/contracts/operation.ts";
import { managerHttp } from "../../shared/manager-http.ts";
import { systemPorts } from "../../shared/ports.ts";
import { startFace, type TestFace } from "../kit/face.ts";
import type { TestManager } from "../kit/manager.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { runExample } from "./example.ts";

let space: TestSpace;
let face: TestFace;
let manager: TestManager;

beforeAll(async () => {
  space = await startSpace({ services: ["auth", "exchange"] });
  face = await startFace(space);
  manager = await space.manager(await space.person("alice", { scope: ["supervise"] }), { upTo: "none" });
});
afterAll(async () => {
  await face.close();
  await space.stop();
});

const prepare = (): Input<typeof managerPrepare> => ({
  ...manager.envelope(),
  kind: "manager-service-authority",
  operation: "prepare",
});
const asking = (more: Partial<Parameters<typeof managerHttp>[0]> = {}) =>
  managerHttp({
    url: `${face.url}/manager-service-authority`,
    capability: face.capability,
    idpToken: () => manager.person.idToken(),
    ports: systemPorts,
    ...more,
  });

describe("a manager without credentials", () => {
  it("asks with its person's login", async () => {
    const prepared = await asking().managerPrepare(prepare());
    expect(prepared).toMatchObject({ ok: true, data: { owner: manager.person.owner } });
  });

  it("is given refusals as values, with their outcome", async () => {
    expect(await asking({ idpToken: () => "no.login.atall" }).managerPrepare(prepare())).toEqual({
      ok: false,
      error: {
        code: "unauthenticated",
        message: expect.any(String),
        outcome: "not-executed",
        details: [],
      },
    });
    const elsewhere = { ...prepare(), space: "other" as typeof space.space };
    expect(await asking().managerPrepare(elsewhere)).toMatchObject({ ok: false, error: { code: "permission-denied" } });
    expect(await asking({ capability: "guess" }).managerPrepare(prepare())).toMatchObject({ ok: false });
  });

  it("gets what its own login throws", async () => {
    const away = async () => Promise.reject(new Error("not logged in"));
    await expect(asking({ idpToken: away }).managerPrepare(prepare())).rejects.toThrow("not logged in");
  });

  it("is used as its own example shows", async () => {
    const open = createServer((incoming, outgoing) => void forward(incoming, outgoing));
    const meshUrl = await listening(open);
    try {
      const given = { meshUrl, login: () => manager.person.idToken(), request: prepare() };
      expect(await runExample("shared/manager-http.ts", given)).toEqual([expect.stringMatching(/^\d{10}$/)]);
    } finally {
      open.close();
    }
  });
});

/** A public face in small: discovery, and what asks for the capability where there is none. */
async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const own = `http://${incoming.headers.host}`;
  if (incoming.url === "/.well-known/cotal-mesh") {
    const endpoints = { managerAuthorityUrl: `${own}/manager-service-authority` };
    outgoing.end(JSON.stringify({ userAuth: { endpoints } }));
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const response = await fetch(`${face.url}${incoming.url}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${face.capability}` },
    body: Buffer.concat(chunks),
  });
  outgoing.writeHead(response.status, { "content-type": "application/json" }).end(await response.text());
}

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port was bound");
  return `http://127.0.0.1:${address.port}`;
}

describe("a road that breaks", () => {
  let server: Server;
  let url: string;
  let answers: ((outgoing: ServerResponse, incoming: IncomingMessage) => void)[] = [];
  let heard = 0;

  beforeAll(async () => {
    server = createServer((incoming, outgoing) => {
      heard += 1;
      incoming.resume();
      answers.shift()?.(outgoing, incoming);
    });
    url = await listening(server);
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const says =
    (status: number, body: string, headers: Record<string, string> = {}) =>
    (outgoing: ServerResponse) =>
      void outgoing.writeHead(status, headers).end(body);
  const problem = (code: string, outcome: string, headers = {}) =>
    says(503, JSON.stringify({ error: "so it is", code, outcome }), headers);
  const lost = (...given: typeof answers) => {
    answers = given;
    heard = 0;
    return asking({ url, idpToken: () => "t" });
  };
  const goals = (): Input<typeof managerScanGoals> => ({
    ...manager.envelope(),
    kind: "manager-goal-index-scan",
    registrationProof: manager.declaration(),
    serveEpoch: 0,
  });

  it("leaves the outcome unknown where nothing says more, and does not ask for a write again", async () => {
    const unknown = { ok: false, error: { code: "unavailable", outcome: "unknown" } };
    for (const answer of [
      says(502, "<html>bad gateway</html>"),
      says(500, '{"error":"no code"}'),
      says(503, '{"error":"x","code":"no-such-code","outcome":"not-executed"}'),
      says(200, "{"),
      (outgoing: ServerResponse) => void outgoing.destroy(),
      problem("unavailable", "unknown"),
    ]) {
      expect(await lost(answer).managerPrepare(prepare())).toMatchObject(unknown);
      expect(heard).toBe(1);
    }
  });

  it("is taken again where nothing was executed, and by what only reads", async () => {
    const done = says(200, "{}");
    expect(await lost(problem("unavailable", "not-executed"), done).managerPrepare(prepare())).toMatchObject({
      ok: true,
    });
    expect(heard).toBe(2);
    expect(await lost(says(502, ""), done).managerScanGoals(goals())).toMatchObject({ ok: true });
    expect(heard).toBe(2);
  });

  it("is taken once if so asked, and never for a refusal", async () => {
    const full = problem("resource-exhausted", "not-executed", { "retry-after": "7" });
    expect(await lost(full).managerPrepare(prepare(), { once: true })).toEqual({
      ok: false,
      error: {
        code: "resource-exhausted",
        message: "so it is",
        outcome: "not-executed",
        details: [{ kind: "ai.cotal.ep.retry-after", seconds: 7 }],
      },
    });
    await lost(problem("conflict", "not-executed")).managerPrepare(prepare());
    expect(heard).toBe(1);
  });

  it("ends at its deadline, or when it is given up", async () => {
    const silence = () => {};
    expect(await lost(silence).managerPrepare(prepare(), { deadlineMs: 100 })).toMatchObject({
      error: { code: "unavailable", outcome: "unknown" },
    });
    const giveUp = new AbortController();
    const asked = lost(() => giveUp.abort()).managerPrepare(prepare(), { signal: giveUp.signal });
    expect(await asked).toMatchObject({ error: { code: "cancelled", outcome: "unknown" } });
  });

  it("was certainly not taken where nobody listens", async () => {
    const gone = createServer();
    const nowhere = await listening(gone);
    gone.close();
    await once(gone, "close");
    expect(await asking({ url: nowhere }).managerPrepare(prepare(), { deadlineMs: 100 })).toMatchObject({
      error: { code: "unavailable", outcome: "not-executed" },
    });
  });

  it("leads nowhere else: a redirect is not followed with a login", async () => {
    const moved = says(307, "", { location: `${url}/elsewhere` });
    expect(await lost(moved, says(200, "{}")).managerPrepare(prepare())).toMatchObject({ ok: false });
    expect(heard).toBe(1);
  });
});
