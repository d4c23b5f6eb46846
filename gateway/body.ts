/** Reads a request's JSON object within its bounds (identity §11.2, §11.3). */
import type { IncomingMessage } from "node:http";
import { parseStrict } from "../shared/canonical.ts";
import type { JsonObject } from "../shared/envelope.ts";
import { isAuthorityError } from "../shared/errors.ts";
import { GATEWAY, WIRE } from "../shared/limits.ts";
import type { Ports } from "../shared/ports.ts";
import { HttpFault } from "./problem.ts";

/** What is not read to its end must not be taken for the next request. */
const CLOSE = { connection: "close" } as const;

export async function readObject(incoming: IncomingMessage, ports: Ports): Promise<JsonObject> {
  const [type = ""] = (incoming.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/json") {
    throw new HttpFault(415, "bad-request", "send application/json", CLOSE);
  }
  const body = await readBody(incoming, ports);
  let value: unknown;
  try {
    value = parseStrict(body, { maxBytes: GATEWAY.maxBody, maxDepth: WIRE.maxDepth });
  } catch (error) {
    throw isAuthorityError(error) ? new HttpFault(400, "bad-request", error.message) : error;
  }
  if (!isObject(value)) throw new HttpFault(400, "bad-request", "the body is not a JSON object");
  return value;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

async function readBody(incoming: IncomingMessage, ports: Ports): Promise<Uint8Array> {
  if (Number(incoming.headers["content-length"] ?? 0) > GATEWAY.maxBody) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  const settled = new AbortController();
  let take = (_: Buffer): void => {};
  const arrived = new Promise<Uint8Array>((resolve, reject) => {
    take = (chunk) => {
      size += chunk.length;
      if (size > GATEWAY.maxBody) reject(tooLarge());
      else chunks.push(chunk);
    };
    incoming.on("data", take);
    incoming.once("end", () => resolve(Buffer.concat(chunks)));
    incoming.once("error", () => reject(broken()));
    incoming.once("close", () => reject(broken())); // after `end` it changes nothing
    ports.sleep(GATEWAY.bodyMs, settled.signal).then(
      () => reject(broken()),
      () => {},
    );
  });
  try {
    return await arrived;
  } finally {
    settled.abort();
    incoming.off("data", take);
  }
}

const tooLarge = (): HttpFault =>
  new HttpFault(413, "bad-request", `the body is larger than ${GATEWAY.maxBody} bytes`, CLOSE);
const broken = (): HttpFault => new HttpFault(400, "bad-request", "the body did not arrive", CLOSE);

/** A member that must be text: what it may say is the service's to judge. */
export function textMember(body: JsonObject, name: string): string {
  const value = body[name];
  if (typeof value !== "string") throw new HttpFault(400, "bad-request", `${name} is not text`);
  return value;
}
