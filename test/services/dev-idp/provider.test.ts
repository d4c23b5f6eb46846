import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type DevIdpOptions, startDevIdp } from "../../../services/dev-idp/provider.ts";
import { IdpVerifier } from "../../../services/exchange/idp.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { PinFile } from "../../../shared/secrets/pins.ts";

const options: DevIdpOptions = { dev: true, address: "127.0.0.1", port: 0, ports: systemPorts };
const post = (url: string, body: string, type = "application/json") =>
  fetch(`${url}/token`, { method: "POST", body, headers: { "content-type": type } });

describe("the development identity provider", () => {
  it("proves any subject for 300 s, under a pin that says what it is", async () => {
    const provider = await startDevIdp(options);
    try {
      const response = await post(provider.url, JSON.stringify({ sub: "zoë" }));
      const { id_token: token }: { id_token: string } = JSON.parse(await response.text());
      const file = Buffer.from(JSON.stringify({ ver: 1, pins: [provider.pin] }));
      const proof = await new IdpVerifier(PinFile.decode("idp.json", file).pins, systemPorts).verify(token);
      expect(proof).toMatchObject({ issuer: provider.url, subject: "zoë" });
      expect(Math.abs(proof.exp - Math.floor(Date.now() / 1_000) - 300)).toBeLessThanOrEqual(1);
    } finally {
      await provider.close();
    }
  });

  it("answers nothing else", async () => {
    const provider = await startDevIdp(options);
    try {
      expect((await post(provider.url, "{}")).status).toBe(400);
      expect((await post(provider.url, "no JSON")).status).toBe(400);
      expect((await post(provider.url, '{"sub":"a"}', "text/plain")).status).toBe(415);
      expect((await post(provider.url, `{"sub":"a","pad":"${"a".repeat(5_000)}"}`)).status).toBe(413);
      expect((await fetch(`${provider.url}/token`)).status).toBe(404);
    } finally {
      await provider.close();
    }
  });

  it.each<[string, Partial<DevIdpOptions>]>([
    ["without --dev", { dev: false }],
    ["in production", { environment: "production" }],
    ["on every address", { address: "0.0.0.0" }],
    ["on a name", { address: "localhost" }],
    ["beside a public face", { publicUrl: "https://mesh.example" }],
    ["beside a public face on a name", { publicUrl: "http://localhost:8080" }],
  ])("does not start %s", async (_, more) => {
    await expect(startDevIdp({ ...options, ...more })).rejects.toMatchObject({ code: "bad-request" });
  });

  it("starts beside a public face on loopback", async () => {
    const provider = await startDevIdp({ ...options, publicUrl: "http://[::1]:8080" });
    await provider.close();
  });

  it("exits 2 on the command line without --dev, and ends on SIGTERM with it", async () => {
    const main = fileURLToPath(new URL("../../../services/dev-idp/main.ts", import.meta.url));
    const start = (...flags: string[]) =>
      spawn(process.execPath, ["--import", "tsx", main, ...flags], { stdio: "pipe" });
    const refused = start();
    const running = start("--dev");
    const [line] = await once(running.stdout, "data");
    expect(JSON.parse(String(line))).toMatchObject({ ver: 1, pins: [{ development: true }] });
    running.kill("SIGTERM");
    const codes = await Promise.all(
      [refused, running].map(async (child) => child.exitCode ?? (await once(child, "exit"))[0]),
    );
    expect(codes).toEqual([2, 0]);
  });
});
