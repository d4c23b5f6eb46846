/** One face on a real port, with an answer of the test's own behind it, and requests of any shape in front. */
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { pino } from "pino";
import { faceApp } from "../../gateway/app.ts";
import type { FaceDeps } from "../../gateway/env.ts";
import type { Forwarded } from "../../gateway/routes.ts";
import { listen } from "../../gateway/server.ts";
import type { Ports } from "../../shared/ports.ts";
import { testPorts } from "../kit/clock.ts";

export const CAP = "c".repeat(43);

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a body holds is what a test asserts
  readonly body: any;
}

export interface Door {
  readonly port: number;
  /** What was asked of the services. */
  readonly asked: Forwarded[];
  readonly lines: string[];
  send(
    method: string,
    path: string,
    more?: { headers?: Record<string, string>; body?: string | Buffer },
  ): Promise<Answer>;
  /** A POST of JSON, with the capability where the face asks for it. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  /** Bytes as they are; what came back until the server closed. */
  raw(text: string): Promise<string>;
  drain(): void;
  close(): Promise<void>;
}

type Options = Partial<Pick<FaceDeps, "face" | "trustedProxy" | "connected">> & {
  ask?: (forwarded: Forwarded, deadlineMs: number) => Promise<unknown>;
  ports?: Ports;
};

export async function openDoor(options: Options = {}): Promise<Door> {
  const { face = "loopback", trustedProxy = false, connected = () => true, ports = testPorts() } = options;
  const { ask = async () => ({ ok: true }) } = options;
  const asked: Forwarded[] = [];
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
  let draining = false;
  let port = 0;
  const app = faceApp({
    face,
    port: () => port,
    ...(face === "loopback" ? { cap: CAP } : {}),
    trustedProxy,
    ask(forwarded, deadlineMs) {
      asked.push(forwarded);
      return ask(forwarded, deadlineMs);
    },
    connected,
    draining: () => draining,
    ports,
    log,
  });
  const server = await listen(app, 0, { face, ports, log });
  port = server.port;
  const own: Record<string, string> = face === "loopback" ? { authorization: `Bearer ${CAP}` } : {};
  const send: Door["send"] = (method, path, { headers = {}, body } = {}) =>
    new Promise((resolve, reject) => {
      const request = httpRequest({ host: "127.0.0.1", port, method, path, headers, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const json = response.headers["content-type"]?.startsWith("application/json") && text !== "";
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            body: json ? JSON.parse(text) : {},
          });
        });
      });
      request.on("error", reject);
      request.end(body);
    });
  return {
    port,
    asked,
    lines,
    send,
    post: (path, body, headers = {}) =>
      send("POST", path, {
        headers: { "content-type": "application/json", ...own, ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    get: (path, headers = {}) => send("GET", path, { headers: { ...own, ...headers } }),
    raw: (text) =>
      new Promise((resolve, reject) => {
        let got = "";
        const socket = connect(port, "127.0.0.1", () => socket.write(text));
        socket.setEncoding("utf8").on("data", (data) => {
          got += data;
        });
        socket.once("error", reject);
        socket.once("close", () => resolve(got));
      }),
    drain() {
      draining = true;
    },
    close: () => server.close(),
  };
}
