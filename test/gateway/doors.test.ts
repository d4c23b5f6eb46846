import { request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { errors } from "@nats-io/nats-core";
import { afterEach, describe, expect, it } from "vitest";
import { AuthorityError, unavailable } from "../../shared/errors.ts";
import { systemPorts } from "../../shared/ports.ts";
import { testPorts } from "../kit/clock.ts";
import { CAP, type Door, openDoor } from "./door.ts";

const open: Door[] = [];
const door = async (options: Parameters<typeof openDoor>[0] = {}): Promise<Door> => {
  const opened = await openDoor(options);
  open.push(opened);
  return opened;
};
afterEach(() => Promise.all(open.splice(0).map((each) => each.close())));

const LOGIN = { idpToken: "t", actor: "cli" };
const refuse = async () => {
  throw new AuthorityError("unauthenticated", "the proof of login is not valid");
};

describe("every response", () => {
  it("has the security headers, whatever became of the request", async () => {
    const always = {
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "content-security-policy": "default-src 'none'",
      "x-frame-options": "DENY",
    };
    for (const face of ["loopback", "public"] as const) {
      const { get, post, send } = await door({ face, ask: refuse });
      const answers = [
        await get("/health"),
        await post("/exchange", LOGIN),
        await get("/nowhere"),
        await send("OPTIONS", "/exchange", { headers: { authorization: `Bearer ${CAP}` } }),
        await post("/exchange", "x"),
        await send("GET", "/jwks", { headers: { host: "a b" } }),
      ];
      expect(answers.map(({ status }) => status)).toEqual([200, 401, 404, 405, 400, 400]);
      for (const { headers } of answers) {
        expect(headers).toMatchObject(always);
        expect(headers["strict-transport-security"]).toBe(face === "public" ? "max-age=31536000" : undefined);
        for (const name of Object.keys(headers)) expect(name).not.toMatch(/^access-control-/);
      }
    }
  });

  it("has them where Node's own parser refuses, too", async () => {
    const { raw } = await door({ face: "public" });
    const answer = await raw("NONSENSE\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain("x-frame-options: DENY");
    expect(answer).toContain('"code":"bad-request"');
  });
});

describe("the loopback face", () => {
  it("asks for its capability everywhere but at the health routes", async () => {
    const { send, port, asked } = await door();
    const host = `127.0.0.1:${port}`;
    for (const authorization of [undefined, "", CAP, `Bearer ${CAP}x`, `bearer ${CAP}`, `Bearer ${"d".repeat(43)}`]) {
      const headers = { host, ...(authorization === undefined ? {} : { authorization }) };
      for (const path of ["/jwks", "/nowhere"]) {
        const { status, body } = await send("GET", path, { headers });
        expect([status, body.code]).toEqual([401, "unauthenticated"]);
      }
    }
    expect((await send("GET", "/health", { headers: { host } })).status).toBe(200);
    expect((await send("GET", "/ready", { headers: { host } })).status).toBe(200);
    expect(asked).toHaveLength(1); // what /ready asked
    expect((await send("GET", "/jwks", { headers: { host, authorization: `Bearer ${CAP}` } })).status).toBe(200);
  });

  it("answers under loopback names with its port alone", async () => {
    const { get, port } = await door();
    for (const host of [
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      `LOCALHOST:${port}`,
      `[::1]:${port}`,
      `127.1.2.3:${port}`,
    ]) {
      expect([host, (await get("/jwks", { host })).status]).toEqual([host, 200]);
    }
    for (const host of [
      "127.0.0.1",
      "localhost",
      `127.0.0.1:${port + 1}`,
      `mesh.example:${port}`,
      `localhost.evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      `128.0.0.1:${port}`,
    ]) {
      const { status, body } = await get("/health", { host });
      expect([host, status, body.code]).toEqual([host, 403, "permission-denied"]);
    }
  });

  it("is not ready without a broker or while exchange is silent", async () => {
    let connected = false;
    let answer: () => Promise<unknown> = async () => ({});
    const { get, asked } = await door({ connected: () => connected, ask: () => answer() });
    const ready = async () => {
      const { status, body } = await get("/ready");
      return [status, body.ready ?? body.code];
    };
    expect(await ready()).toEqual([503, "unavailable"]);
    expect(asked).toEqual([]);
    connected = true;
    expect(await ready()).toEqual([200, true]);
    answer = async () => {
      throw unavailable("no responders", undefined, "not-executed");
    };
    expect(await ready()).toEqual([503, "unavailable"]);
    expect((await get("/health")).status).toBe(200);
  });

  it("asks exchange once for all who want to know meanwhile", async () => {
    let answer = (_: unknown) => {};
    const { get, asked } = await door({ ask: () => new Promise((resolve) => (answer = resolve)) });
    const all = Promise.all(Array.from({ length: 10 }, () => get("/ready")));
    await expect.poll(() => asked.length).toBe(1);
    await get("/health");
    answer({});
    expect((await all).map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(asked).toHaveLength(1);
  });
});

describe("a page of somebody else's", () => {
  it.each(["loopback", "public"] as const)("posts nothing through the %s face", async (face) => {
    const { post, get, asked } = await door({ face });
    const { status, body } = await post("/exchange", LOGIN, { origin: "https://evil.example" });
    expect([status, body.code]).toEqual([403, "permission-denied"]);
    expect(asked).toEqual([]);
    expect((await get("/jwks", { origin: "https://evil.example" })).status).toBe(200);
  });
});

describe("failed credentials", () => {
  it("are told apart thirty times a minute, and a good one passes all the same", async () => {
    const ports = testPorts();
    let good = false;
    const { post } = await door({ face: "public", ports, ask: async () => (good ? { token: "b" } : refuse()) });
    for (let at = 0; at < 30; at += 1) expect((await post("/exchange", LOGIN)).status).toBe(401);
    const { status, body, headers } = await post("/exchange", LOGIN);
    expect([status, body]).toEqual([429, { error: expect.any(String), code: "resource-exhausted" }]);
    expect(headers["retry-after"]).toBe("60");
    good = true;
    expect((await post("/exchange", LOGIN)).status).toBe(200);
    good = false;
    ports.advance(59_000);
    expect((await post("/exchange", LOGIN)).headers["retry-after"]).toBe("1");
    ports.advance(1_000);
    expect((await post("/exchange", LOGIN)).status).toBe(401);
  });

  it("leave the window one by one", async () => {
    const ports = testPorts();
    const { post } = await door({ face: "public", ports, ask: refuse });
    for (let at = 0; at < 30; at += 1) {
      await post("/exchange", LOGIN);
      ports.advance(1_000);
    }
    expect((await post("/exchange", LOGIN)).status).toBe(429);
    ports.advance(30_000);
    expect((await post("/exchange", LOGIN)).status).toBe(401);
    expect((await post("/exchange", LOGIN)).status).toBe(429);
  });

  it("are no other refusals", async () => {
    const { post } = await door({
      face: "public",
      ask: async () => {
        throw new AuthorityError("permission-denied", "no");
      },
    });
    for (let at = 0; at < 40; at += 1) expect((await post("/exchange", LOGIN)).status).toBe(403);
  });

  it("are charged to the socket's address, or to the last hop of a trusted proxy", async () => {
    const spend = async ({ post }: Door, forwarded: (at: number) => string) => {
      let last = 0;
      for (let at = 0; at < 31; at += 1) {
        last = (await post("/exchange", LOGIN, { "x-forwarded-for": forwarded(at) })).status;
      }
      return last;
    };
    const direct = await door({ face: "public", ask: refuse });
    expect(await spend(direct, (at) => `203.0.113.${at}`)).toBe(429);
    const proxied = await door({ face: "public", trustedProxy: true, ask: refuse });
    expect(await spend(proxied, (at) => `198.51.100.9, 203.0.113.${at}`)).toBe(401);
    expect(await spend(proxied, (at) => `198.51.100.${at}, 203.0.113.99`)).toBe(429);
    expect(await spend(proxied, (at) => `203.0.113.1, unknown-${at}`)).toBe(429); // malformed: the socket's
  });

  it("have a bucket of their own at the capability", async () => {
    const ports = testPorts();
    const { get, post, send, port } = await door({ ports, ask: refuse });
    const wrong = { headers: { host: `127.0.0.1:${port}`, authorization: "Bearer x" } };
    for (let at = 0; at < 30; at += 1) expect((await send("GET", "/jwks", wrong)).status).toBe(401);
    const { status, headers } = await send("GET", "/jwks", wrong);
    expect([status, headers["retry-after"]]).toEqual([429, "60"]);
    expect((await get("/health")).status).toBe(200);
    expect((await post("/exchange", LOGIN)).status).toBe(401); // the capability was good, the login was not
  });

  it("of more than 1,024 peers are forgotten in order of use", async () => {
    const { post } = await door({ face: "public", trustedProxy: true, ask: refuse });
    const from = (peer: string) => post("/exchange", LOGIN, { "x-forwarded-for": peer });
    for (let at = 0; at < 30; at += 1) await from("203.0.113.1");
    expect((await from("203.0.113.1")).status).toBe(429);
    for (let at = 0; at < 1_023; at += 1) await from(`198.18.${at >> 8}.${at & 255}`);
    expect((await from("203.0.113.1")).status).toBe(429);
    for (let at = 0; at < 1_024; at += 1) await from(`198.19.${at >> 8}.${at & 255}`);
    expect((await from("203.0.113.1")).status).toBe(401);
  });
});

describe("the requests in flight", () => {
  function held() {
    const waiting: (() => void)[] = [];
    const ask = () => new Promise<unknown>((resolve) => waiting.push(() => resolve({})));
    const finish = () => {
      for (const release of waiting.splice(0)) release();
    };
    return { ask, finish, waiting };
  }

  it("are 64 of one face, health excepted", async () => {
    const { ask, finish, waiting } = held();
    const { get, post } = await door({ face: "public", ask });
    const all = Array.from({ length: 64 }, (_, at) => (at % 2 ? get("/jwks") : post("/exchange", LOGIN)));
    await expect.poll(() => waiting.length).toBe(64);
    const { status, body, headers } = await post("/exchange", LOGIN);
    expect([status, body.code, headers["retry-after"]]).toEqual([503, "unavailable", "1"]);
    expect((await get("/jwks")).status).toBe(503);
    expect((await get("/health")).status).toBe(200);
    finish();
    expect((await Promise.all(all)).every((answer) => answer.status === 200)).toBe(true);
    const again = post("/exchange", LOGIN);
    await expect.poll(() => waiting.length).toBe(1);
    finish();
    expect((await again).status).toBe(200);
  });

  it("are eight of one forwarded peer, slow bodies counted", async () => {
    const { ask, finish, waiting } = held();
    const { get, post, port } = await door({ face: "public", trustedProxy: true, ask });
    const peer = { "x-forwarded-for": "203.0.113.7" };
    const slow = Array.from({ length: 4 }, () => {
      const headers = { ...peer, "content-type": "application/json", "content-length": "100" };
      const request = httpRequest({
        host: "127.0.0.1",
        port,
        method: "POST",
        path: "/exchange",
        headers,
        agent: false,
      });
      request.on("error", () => {});
      request.write("{");
      return request;
    });
    const fast = Array.from({ length: 4 }, () => post("/exchange", LOGIN, peer));
    await expect.poll(async () => (await get("/jwks", { "x-forwarded-for": "203.0.113.7" })).status).toBe(503);
    expect(waiting.length).toBeLessThanOrEqual(4);
    const other = post("/exchange", LOGIN, { "x-forwarded-for": "203.0.113.8" });
    await expect.poll(() => waiting.length).toBe(5);
    for (const request of slow) request.destroy();
    finish();
    expect((await other).status).toBe(200);
    expect((await Promise.all(fast)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const freed = get("/jwks", peer);
    await expect.poll(() => waiting.length).toBe(1);
    finish();
    expect((await freed).status).toBe(200);
  });

  it("have sockets: 256, and the next is closed", async () => {
    const { port, get } = await door({ face: "public" });
    const sockets: Socket[] = [];
    for (let at = 0; at < 256; at += 1) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      sockets.push(socket);
      await new Promise((resolve) => socket.once("connect", resolve));
    }
    const next = connect(port, "127.0.0.1");
    next.on("error", () => {});
    await new Promise((resolve) => next.once("close", resolve));
    for (const socket of sockets) socket.destroy();
    await expect
      .poll(async () =>
        get("/health").then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200);
  });
});

describe("time", () => {
  it("of a body is ten seconds, and then it did not arrive", async () => {
    const waits: number[] = [];
    const ports = { ...testPorts(), sleep: async (ms: number) => void waits.push(ms) };
    const { raw } = await door({ face: "public", ports });
    const answer = await raw(
      "POST /exchange HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain("connection: close");
    expect(waits[0]).toBe(10_000);
  });

  it.each([
    ["a health route", "GET /health HTTP/1.1\r\nhost: x"],
    ["no route", "POST /nowhere HTTP/1.1\r\nhost: x"],
    ["a Host that is none", "GET /health HTTP/1.1\r\nhost: a b"],
    ["an expectation that nobody has", "GET /health HTTP/1.1\r\nhost: x\r\nexpect: more"],
  ])("has no body that nobody reads: with the answer for %s the connection ends", async (_, head) => {
    const { raw } = await door({ face: "public" });
    const answer = await raw(`${head}\r\ncontent-length: 1000000\r\n\r\n{`);
    expect(answer).toMatch(/^HTTP\/1\.1 (200|400|404) /);
    expect(answer).toContain("x-frame-options: DENY");
    expect(answer.toLowerCase()).toContain("connection: close");
  });

  it("goes on for a connection whose requests were complete", async () => {
    const { raw } = await door({ face: "public" });
    const ask = "GET /health HTTP/1.1\r\nhost: x\r\n";
    const answer = await raw(`${ask}\r\n${ask}connection: close\r\n\r\n`);
    expect(answer.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
  });

  it("without an answer becomes deadline-exceeded, of unknown outcome", async () => {
    // However early the timer fired that ended the waiting.
    const ask = async () => {
      const cause = new errors.TimeoutError();
      throw new AuthorityError("unavailable", "no answer in time", { outcome: "unknown", cause });
    };
    const { post } = await door({ ask });
    const exchange = await post("/exchange", LOGIN);
    expect([exchange.status, exchange.body.code]).toEqual([504, "deadline-exceeded"]);
    const manager = await post("/manager-service-authority", { idpToken: "t", request: { kind: "actor-renew" } });
    expect([manager.status, manager.body]).toEqual([
      504,
      { error: expect.any(String), code: "deadline-exceeded", outcome: "unknown" },
    ]);
  });

  it("is not waited for where nobody serves", async () => {
    const { post } = await door({
      ask: async () => {
        throw new AuthorityError("unavailable", "nobody serves this operation", { outcome: "not-executed" });
      },
    });
    expect((await post("/exchange", LOGIN)).status).toBe(503);
  });
});

describe("a stop", () => {
  it("answers nothing new but health, finishes what runs, and closes what is kept open", async () => {
    let release = (_: unknown) => {};
    const opened = await openDoor({ ask: () => new Promise((resolve) => (release = resolve)), ports: systemPorts });
    const running = opened.post("/exchange", LOGIN);
    await expect.poll(() => opened.asked.length).toBe(1);
    opened.drain();
    const late = await opened.post("/exchange", LOGIN);
    expect([late.status, late.body.code, late.headers.connection]).toEqual([503, "unavailable", "close"]);
    expect((await opened.get("/health")).status).toBe(200);
    expect((await opened.get("/ready")).status).toBe(503);
    const closed = opened.close();
    await expect
      .poll(() =>
        opened.get("/health").then(
          () => "served",
          () => "refused",
        ),
      )
      .toBe("refused");
    release({ done: true });
    expect((await running).body).toEqual({ done: true });
    await closed;
  });

  it("waits ten seconds at most", async () => {
    const waits: number[] = [];
    let late = () => {};
    const sleep = (ms: number) =>
      new Promise<void>((resolve) => {
        waits.push(ms);
        if (ms === 10_000) late = resolve;
      });
    const opened = await openDoor({ ask: () => new Promise(() => {}), ports: { ...testPorts(), sleep } });
    const running = opened.get("/jwks").then(
      () => "answered",
      () => "cut",
    );
    await expect.poll(() => opened.asked.length).toBe(1);
    const closed = opened.close();
    await expect.poll(() => waits).toEqual([10_000]);
    late();
    await closed;
    expect(await running).toBe("cut");
  });
});
