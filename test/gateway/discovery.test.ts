import { connect, jwtAuthenticator } from "@nats-io/transport-node";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openFaces } from "../../gateway/start.ts";
import { parseCreds } from "../../shared/credentials/creds.ts";
import { decodeJwt } from "../../shared/credentials/jwt.ts";
import { OwnedConnections, runCloseSteps } from "../../shared/nats/owned.ts";
import { newNonce, systemPorts } from "../../shared/ports.ts";
import { freePorts } from "../kit/broker.ts";
import { login, ownerOf, pin } from "../kit/logins.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";

const second = { ...pin, url: "https://other.example", issuer: "https://other.example" };

let space: TestSpace;
let base: string;
let close: () => Promise<void>;
beforeAll(async () => {
  const [port = 0, loopbackPort = 0] = await freePorts(2);
  base = `http://127.0.0.1:${port}`;
  const gateway = { loopbackPort, publicPort: port, publicUrl: base };
  // What is advertised is known once the broker has its port.
  space = await startSpace({ pins: [pin, second], settings: { gateway } });
  const settings = { ...space.settings, broker: { advertised: space.broker.url, tlsRequired: false } };
  await space.host(["custodian", "auth", "callout"]);
  await space.host(["exchange"], () => ({ settings }));
  const owned = new OwnedConnections({ servers: space.servers }, systemPorts);
  const faces = await openFaces({
    space: space.space,
    port: 0,
    publicFace: { port, url: base, trustedProxy: false },
    secrets: space.secrets,
    owned,
    ports: systemPorts,
    log: pino({ level: "silent" }),
  });
  close = async () => {
    await Promise.all(faces.map((face) => face.close()));
    await runCloseSteps(owned.closeSteps(""));
  };
});
afterAll(async () => {
  await close();
  await space.stop();
});

type Members = Record<string, unknown>;
interface Checked {
  readonly space: string;
  readonly server: string;
  readonly creds: { readonly jwt: string; readonly seed: string };
  readonly issuers: readonly string[];
  readonly audience: string;
  readonly exchangeUrl: string;
  readonly jwksUrl: string;
}

/** What a careful client asks of a bundle before it believes it. It knows the chapter and nothing of our code. */
function check(bundle: unknown): Checked {
  const fail = (why: string): never => {
    throw new Error(`no bundle: ${why}`);
  };
  const members = (value: unknown, where: string, required: string[], optional: string[] = []): Members => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return fail(where);
    const names = Object.keys(value);
    const surplus = names.find((name) => !required.includes(name) && !optional.includes(name));
    const missing = required.find((name) => !names.includes(name));
    return (surplus ?? missing) ? fail(`${where}: ${surplus ?? missing}`) : (value as Members);
  };
  const text = (value: unknown, where: string): string =>
    typeof value === "string" && value !== "" ? value : fail(where);
  const trustworthy = (value: unknown, where: string): URL => {
    const url = new URL(text(value, where));
    const loopback = url.protocol === "http:" && /^(127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
    return url.protocol === "https:" || loopback ? url : fail(`${where}: neither https nor loopback`);
  };
  const pinOf = (value: unknown, where: string): Members => {
    const found = members(value, where, ["url", "issuer", "audience"], ["jwksUri"]);
    trustworthy(found.url, `${where}.url`);
    if (found.jwksUri !== undefined) trustworthy(found.jwksUri, `${where}.jwksUri`);
    return found;
  };

  const top = members(bundle, "bundle", ["space", "server", "tlsRequired", "sentinelCreds", "userAuth"], ["policy"]);
  const auth = members(top.userAuth, "userAuth", ["provider", "idp", "endpoints"], ["idps"]);
  const idp = pinOf(auth.idp, "idp");
  const idps = auth.idps === undefined ? [idp] : (auth.idps as unknown[]).map((one) => pinOf(one, "idps"));
  if (auth.provider !== "cotal") fail("provider");
  if (JSON.stringify(idps[0]) !== JSON.stringify(idp)) fail("idp is not the first of idps");
  if (auth.idps !== undefined && idps.length < 2) fail("idps of one");
  const ends = members(auth.endpoints, "endpoints", ["url", "managerAuthorityUrl"], ["agentProvisioningUrl"]);
  const url = trustworthy(ends.url, "endpoints.url");
  if (url.search !== "" || url.hash !== "") fail("endpoints.url has a query or a fragment");
  const at = text(ends.url, "endpoints.url");
  if (ends.managerAuthorityUrl !== `${at}/manager-service-authority`) fail("managerAuthorityUrl");
  if (ends.agentProvisioningUrl !== undefined && trustworthy(ends.agentProvisioningUrl, "agents").protocol !== "https:")
    fail("agentProvisioningUrl");
  if (top.policy !== undefined && members(top.policy, "policy", ["events"]).events !== "required") fail("policy");
  if (typeof top.tlsRequired !== "boolean") fail("tlsRequired");

  // Public by design, so it must be worth nothing by itself.
  const creds = parseCreds(text(top.sentinelCreds, "sentinelCreds"));
  const { nats } = decodeJwt(creds.jwt);
  const rules = [nats.pub, nats.sub] as ({ allow?: unknown[]; deny?: unknown[] } | undefined)[];
  if (nats.type !== "user" || nats.bearer_token === true) fail("sentinel");
  if (!rules.every((rule) => !rule?.allow?.length && rule?.deny?.includes(">"))) fail("the sentinel may do something");
  return {
    space: text(top.space, "space"),
    server: text(top.server, "server"),
    creds,
    issuers: idps.map((one) => text(one.issuer, "issuer")),
    audience: text(idp.audience, "audience"),
    exchangeUrl: `${at}/exchange`,
    jwksUrl: `${at}/jwks`,
  };
}

const bundle = async (): Promise<unknown> => (await fetch(`${base}/.well-known/cotal-mesh`)).json();

describe("the discovery bundle", () => {
  it("stands up to a client's checker, and is all that a client needs to log in and connect", async () => {
    const mesh = check(await bundle());
    expect(mesh.issuers).toEqual([pin.issuer, second.issuer]);
    expect(mesh.audience).toBe(pin.audience);
    await space.person("alice", { allowPublish: ["general"] });

    const response = await fetch(mesh.exchangeUrl, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ actor: "cli", idpToken: login("alice") }),
    });
    const { token, owner }: { token: string; owner: string } = JSON.parse(await response.text());
    const keys = createRemoteJWKSet(new URL(mesh.jwksUrl));
    const { payload } = await jwtVerify(token, keys, {
      issuer: `urn:cotal:auth:${mesh.space}`,
      audience: mesh.space,
      algorithms: ["EdDSA"],
    });
    expect(payload.sub).toBe(owner);
    expect(owner).toBe(await ownerOf(space, "alice"));

    const nonce = newNonce(systemPorts);
    const sentinel = jwtAuthenticator(mesh.creds.jwt, new TextEncoder().encode(mesh.creds.seed));
    const connection = await connect({
      servers: mesh.server,
      name: nonce,
      inboxPrefix: `_INBOX_${nonce}`,
      authenticator: (challenge) => ({ ...sentinel(challenge), auth_token: token }),
    });
    const heard: string[] = [];
    space.roots.space.subscribe("cotal.demo.chat.>", { callback: (_, { subject }) => void heard.push(subject) });
    await space.roots.space.flush();
    connection.publish(`cotal.demo.chat.${owner}.cli.general`, "hello");
    await expect.poll(() => heard).toEqual([`cotal.demo.chat.${owner}.cli.general`]);
    await connection.close();
  });

  it("is refused by that checker for each thing that it looks at", async () => {
    const good = (await bundle()) as { userAuth: { endpoints: object; idp: object } } & Members;
    const withAuth = (more: object) => ({ ...good, userAuth: { ...good.userAuth, ...more } });
    const withEnds = (more: object) => withAuth({ endpoints: { ...good.userAuth.endpoints, ...more } });
    for (const bad of [
      { ...good, more: 1 },
      { ...good, sentinelCreds: undefined },
      withAuth({ provider: "other" }),
      withAuth({ idp: { ...good.userAuth.idp, url: "http://login.example" } }),
      withAuth({ idps: [good.userAuth.idp] }),
      withEnds({ url: "http://mesh.example" }),
      withEnds({ managerAuthorityUrl: "https://evil.example/manager-service-authority" }),
      withEnds({ agentProvisioningUrl: "http://127.0.0.1" }),
    ]) {
      expect(() => check(JSON.parse(JSON.stringify(bad)))).toThrow("no bundle: ");
    }
  });
});
