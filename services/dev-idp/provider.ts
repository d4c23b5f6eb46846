/** A login for anybody who asks, to try the authority without an identity provider (identity §12). */
import { once } from "node:events";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from "jose";
import { AuthorityError } from "../../shared/errors.ts";
import { IDP } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";

const AUDIENCE = "mesh-development";
const MAX_BODY = 4_096;

export interface DevIdpOptions {
  /** The `--dev` flag. */
  readonly dev: boolean;
  /** `NODE_ENV`. */
  readonly environment?: string | undefined;
  readonly address: string;
  /** 0 for any free one. */
  readonly port: number;
  /** Of a public face beside it, if there is one. */
  readonly publicUrl?: string | undefined;
  readonly ports: Pick<Ports, "now">;
}

export type DevelopmentPin = { url: string; issuer: string; audience: string; jwksUri: string; development: true };

/** The pin of a provider at this URL, whether it runs yet or not. */
export const developmentPin = (url: string): DevelopmentPin => ({
  url,
  issuer: url,
  audience: AUDIENCE,
  jwksUri: `${url}/jwks`,
  development: true,
});

export interface DevIdp {
  readonly url: string;
  /** What `idp.json` has to say for this provider to count. */
  readonly pin: DevelopmentPin;
  close(): Promise<void>;
}

/** Refuses (`bad-request`) wherever a stranger could reach it. */
export async function startDevIdp(options: DevIdpOptions): Promise<DevIdp> {
  refuseOutsideDevelopment(options);
  const { privateKey, publicKey } = await generateKeyPair("EdDSA", { extractable: true });
  const jwk = await exportJWK(publicKey);
  const kid = await calculateJwkThumbprint(jwk);
  const server = createServer().listen(options.port, options.address);
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new TypeError("no port was bound");
  const host = bound.family === "IPv6" ? `[${bound.address}]` : bound.address;
  const url = `http://${host}:${bound.port}`;

  const app = new Hono();
  app.get("/jwks", (context) => context.json({ keys: [{ ...jwk, kid, alg: "EdDSA", use: "sig" }] }));
  app.post("/token", bodyLimit({ maxSize: MAX_BODY }), async (context) => {
    // A page of somebody else's can send a form here, but not this type without asking first.
    if (context.req.header("content-type") !== "application/json") return context.json({ error: "send JSON" }, 415);
    const sub = subjectOf(await context.req.json().catch(() => undefined));
    if (sub === undefined) return context.json({ error: "send {sub}" }, 400);
    const now = Math.floor(options.ports.now() / 1_000);
    const token = await new SignJWT()
      .setProtectedHeader({ alg: "EdDSA", kid, typ: "JWT" })
      .setIssuer(url)
      .setAudience(AUDIENCE)
      .setSubject(sub)
      .setIssuedAt(now)
      .setExpirationTime(now + IDP.developmentTokenS)
      .sign(privateKey);
    return context.json({ id_token: token }, 200, { "cache-control": "no-store" });
  });
  server.on("request", getRequestListener(app.fetch, { overrideGlobalObjects: false }));

  return {
    url,
    pin: developmentPin(url),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function refuseOutsideDevelopment({ dev, environment, address, publicUrl }: DevIdpOptions): void {
  const refuse = (why: string): never => {
    throw new AuthorityError("bad-request", `the development identity provider does not start ${why}`);
  };
  if (!dev) refuse("without --dev");
  if (environment === "production") refuse("with NODE_ENV=production");
  if (!isLoopbackAddress(address)) refuse("on an address that is not loopback");
  if (publicUrl !== undefined && !isLoopbackUrl(publicUrl)) refuse("beside a public face");
}

const isLoopbackAddress = (address: string): boolean =>
  address === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address);

function isLoopbackUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return isLoopbackAddress(hostname.replace(/^\[|\]$/g, ""));
}

function subjectOf(body: unknown): string | undefined {
  const sub = typeof body === "object" && body !== null && "sub" in body ? body.sub : undefined;
  return typeof sub === "string" && sub.length >= 1 && sub.length <= IDP.maxSubject ? sub : undefined;
}
