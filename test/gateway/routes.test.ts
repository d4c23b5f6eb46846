import { afterEach, describe, expect, it } from "vitest";
import { ROUTES } from "../../gateway/routes.ts";
import { authOperations } from "../../shared/contracts/auth.ts";
import { AuthorityError } from "../../shared/errors.ts";
import { CAP, type Door, openDoor } from "./door.ts";

const open: Door[] = [];
const door = async (options: Parameters<typeof openDoor>[0] = {}): Promise<Door> => {
  const opened = await openDoor(options);
  open.push(opened);
  return opened;
};
afterEach(() => Promise.all(open.splice(0).map((each) => each.close())));

const both = ["loopback", "public"] as const;

describe("the routes", () => {
  it("are six, and loopback alone says that it is ready", () => {
    const list = ROUTES.map(({ method, path, faces }) => `${method} ${path} ${faces.join("+")}`);
    expect(list).toEqual([
      "GET /health public+loopback",
      "GET /ready loopback",
      "GET /jwks public+loopback",
      "GET /.well-known/cotal-mesh public+loopback",
      "POST /exchange public+loopback",
      "POST /manager-service-authority public+loopback",
    ]);
  });

  it.each(both)("answer on the %s face what their operation answered", async (face) => {
    const { get, post, asked } = await door({ face, ask: async ({ operation }) => ({ from: operation.name }) });
    const jwks = await get("/jwks?any=1");
    expect([jwks.status, jwks.body, jwks.headers["cache-control"]]).toEqual([
      200,
      { from: "jwks" },
      "public, max-age=300",
    ]);
    const mesh = await get("/.well-known/cotal-mesh");
    expect([mesh.body, mesh.headers["cache-control"]]).toEqual([{ from: "discovery" }, "public, max-age=60"]);
    expect((await get("/health")).body).toEqual({ status: "ok" });
    const exchange = await post("/exchange", { actor: "cli", idpToken: "t" });
    expect([exchange.body, exchange.headers["cache-control"]]).toEqual([{ from: "exchange-user" }, "no-store"]);
    expect((await post("/exchange", { owner: "u", actorToken: "s" })).body).toEqual({ from: "exchange-agent" });
    expect(asked.slice(-2).map(({ args, auth }) => ({ args, auth }))).toEqual([
      { args: { actor: "cli" }, auth: "t" },
      { args: { owner: "u", actorToken: "s" }, auth: undefined },
    ]);
  });

  it("are exact: another path is 404, another method 405 with the one there is", async () => {
    const { send } = await door({ face: "public" });
    for (const path of [
      "/",
      "/exchange/",
      "/x/../jwks",
      "/%6awks",
      "/Jwks",
      "//jwks",
      "/ready",
      "/managed-lifecycle/retire",
      "/service-endpoint-x",
    ]) {
      const { status, body } = await send("POST", path);
      expect([path, status, body.code]).toEqual([path, 404, "not-found"]);
    }
    for (const [method, path, allow] of [
      ["GET", "/exchange", "POST"],
      ["OPTIONS", "/exchange", "POST"],
      ["PUT", "/manager-service-authority", "POST"],
      ["POST", "/jwks", "GET"],
      ["HEAD", "/health", "GET"],
      ["DELETE", "/.well-known/cotal-mesh", "GET"],
      ["TRACE", "/jwks", "GET"],
    ] as const) {
      const { status, headers } = await send(method, path);
      expect([method, path, status, headers.allow]).toEqual([method, path, 405, allow]);
    }
  });

  it("take JSON objects of up to 64 KiB", async () => {
    const { post, send, asked } = await door({ face: "public" });
    const faults: [number, Promise<{ status: number; body: { code: string } }>][] = [
      [415, post("/exchange", "{}", { "content-type": "text/plain" })],
      [415, send("POST", "/exchange", { body: "{}" })],
      [413, post("/exchange", `{"pad":"${"a".repeat(65_527)}"}`)],
      [400, post("/exchange", "null")],
      [400, post("/exchange", "[]")],
      [400, post("/exchange", '"text"')],
      [400, post("/exchange", "{")],
      [400, post("/exchange", "")],
      [400, post("/exchange", '{"a":1,"a":2}')],
      [
        400,
        send("POST", "/exchange", {
          headers: { "content-type": "application/json" },
          body: Buffer.from([0x22, 0xff, 0x22]),
        }),
      ],
    ];
    for (const [status, answer] of faults) {
      const { status: got, body } = await answer;
      expect([got, body.code]).toEqual([status, "bad-request"]);
    }
    expect(asked).toEqual([]);
    const whole = `{"idpToken":"t","pad":"${"a".repeat(65_536 - 25)}"}`;
    expect(Buffer.byteLength(whole)).toBe(65_536);
    expect((await post("/exchange", whole, { "content-type": "Application/JSON; charset=utf-8" })).status).toBe(200);
  });

  it("count a body without length as it comes", async () => {
    const { raw } = await door({ face: "public" });
    const head =
      "POST /exchange HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    const chunk = `4000\r\n${"a".repeat(0x4000)}\r\n`;
    expect(await raw(head + chunk.repeat(5))).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("ask for exactly one proof", async () => {
    const { post, asked } = await door();
    for (const body of [
      {},
      { actor: "cli" },
      { idpToken: "t", actorToken: "s" },
      { idpToken: 7 },
      { idpToken: null },
    ]) {
      expect((await post("/exchange", body)).status).toBe(400);
    }
    expect(asked).toEqual([]);
  });
});

describe("POST /manager-service-authority", () => {
  const mapped = authOperations.filter(({ http }) => http !== undefined);

  it.each(mapped.map((operation) => [operation.name, operation] as const))("reaches %s", async (_, operation) => {
    const { post, asked } = await door({ ask: async () => ({ v: 1 }) });
    const { kind, operation: name, member } = operation.http ?? { kind: "" };
    const request = { kind, ...(name ? { operation: name } : {}), ...(member ? { [member]: {} } : {}) };
    const { status, body } = await post("/manager-service-authority", { idpToken: "t", request });
    expect([status, body]).toEqual([200, { v: 1 }]);
    expect(asked).toEqual([{ operation, args: request, auth: "t" }]);
  });

  it("waits 60 s for them", async () => {
    const deadlines: number[] = [];
    const { post } = await door({
      ask: async (_, deadlineMs) => {
        deadlines.push(deadlineMs);
        return {};
      },
    });
    await post("/manager-service-authority", { idpToken: "t", request: { kind: "actor-renew" } });
    await post("/exchange", { idpToken: "t" });
    expect(deadlines).toEqual([60_000, 15_000]);
  });

  it("forwards nothing that is not in the map, and tells the outcome of every refusal", async () => {
    const { post, asked } = await door();
    const tries: [unknown, number, string][] = [
      [{ idpToken: "t", request: { kind: "delegated-user-intent" } }, 501, "unimplemented"],
      [{ idpToken: "t", request: { kind: "manager-delegated-user-intent-execution" } }, 501, "unimplemented"],
      [{ idpToken: "t", request: { kind: "platform-control" } }, 400, "bad-request"],
      [{ idpToken: "t", request: { kind: "supervisor-authority" } }, 400, "bad-request"],
      [{ idpToken: "t", request: { kind: "manager-run-attempt", attempt: {}, operator: {} } }, 400, "bad-request"],
      [{ idpToken: "t", request: { kind: "manager-run-attempt" } }, 400, "bad-request"],
      [{ idpToken: "t", request: null }, 400, "bad-request"],
      [{ idpToken: "t" }, 400, "bad-request"],
      [{ request: { kind: "actor-renew" } }, 400, "bad-request"],
      [{ idpToken: "t", request: { kind: "actor-renew" }, more: 1 }, 400, "bad-request"],
      [[], 400, "bad-request"],
    ];
    for (const [body, status, code] of tries) {
      const answer = await post("/manager-service-authority", body);
      expect([answer.status, answer.body]).toEqual([
        status,
        { error: expect.any(String), code, outcome: "not-executed" },
      ]);
    }
    expect(asked).toEqual([]);
  });

  it("passes on the outcome that the service stated", async () => {
    for (const outcome of ["executed", "not-executed", "unknown"] as const) {
      const { post } = await door({
        ask: async () => {
          throw new AuthorityError("conflict", "lost", { outcome });
        },
      });
      const { status, body } = await post("/manager-service-authority", {
        idpToken: "t",
        request: { kind: "actor-renew" },
      });
      expect([status, body]).toEqual([409, { error: "lost", code: "conflict", outcome }]);
    }
  });
});

describe("a refusal", () => {
  it("has the status of its code's number and the sentence of the service", async () => {
    const answers: [AuthorityError["code"], number][] = [
      ["bad-request", 400],
      ["unauthenticated", 401],
      ["permission-denied", 403],
      ["not-found", 404],
      ["conflict", 409],
      ["expired", 410],
      ["failed-precondition", 412],
      ["resource-exhausted", 429],
      ["internal", 500],
      ["unimplemented", 501],
      ["unavailable", 503],
      ["deadline-exceeded", 504],
    ];
    for (const [code, status] of answers) {
      const { post } = await door({
        ask: async () => {
          throw new AuthorityError(code, "why", { reason: "a secret reason" });
        },
      });
      const answer = await post("/exchange", { idpToken: "t" });
      expect([answer.status, answer.body]).toEqual([status, { error: "why", code }]);
      expect(answer.text).not.toContain("secret");
    }
  });

  it("is internal without a detail where it is in no catalogue", async () => {
    const { post, lines } = await door({
      ask: async () => {
        throw new TypeError("a secret fault");
      },
    });
    const { status, body } = await post("/exchange", { idpToken: "t" });
    expect([status, body]).toEqual([500, { error: "internal error", code: "internal" }]);
    expect(lines.join("")).toContain("a secret fault");
  });

  it("tells a proven person the owner to be granted, and when to come back", async () => {
    const owner = "u_qzgcmqkl3272ed2stsjzbvrqga";
    const { post } = await door({
      ask: async () => {
        throw new AuthorityError("permission-denied", "no actor", {
          details: [{ kind: "ai.cotal.auth.no-actor", owner, actor: "cli" }],
        });
      },
    });
    expect((await post("/exchange", { idpToken: "t" })).body.error).toBe(`no actor: owner ${owner}, actor cli`);
    const full = await door({
      ask: async () => {
        throw new AuthorityError("resource-exhausted", "full", {
          details: [{ kind: "ai.cotal.ep.retry-after", seconds: 7 }],
        });
      },
    });
    const { status, headers } = await full.post("/exchange", { idpToken: "t" });
    expect([status, headers["retry-after"]]).toEqual([429, "7"]);
  });

  it("never puts a proof into a log", async () => {
    const { post, lines } = await door();
    await post("/exchange", { idpToken: "a-secret-token" });
    expect(lines.join("")).toContain('"path":"/exchange"');
    expect(lines.join("")).not.toContain("a-secret-token");
    expect(lines.join("")).not.toContain(CAP);
  });
});
