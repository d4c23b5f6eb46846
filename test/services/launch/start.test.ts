import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hintsFor } from "../../../services/launch/hints.ts";
import { lockState } from "../../../services/launch/lock.ts";
import { parseStart, parseUp } from "../../../services/launch/options.ts";
import { processesOf } from "../../../services/launch/processes.ts";
import { existingSpace } from "../../../services/launch/space.ts";
import { portsInUse } from "../../../services/launch/tcp-ports.ts";
import { initSpace } from "../../../services/offline/init.ts";
import { permissionsOf } from "../../../shared/credentials/user-permissions.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { Space } from "../../../shared/tokens.ts";
import { freePorts } from "../../kit/broker.ts";

const pins = [{ url: "https://a", issuer: "https://a", audience: "b", jwksUri: "https://a/jwks" }];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "launch-"));
});
afterAll(() => rm(folder, { recursive: true }));

describe("what is printed to try", () => {
  it("names space and folder, so that it works although the folder comes to hold another space", async () => {
    const stateDir = join(folder, "two");
    const [dev, acme] = [Space.parse("dev"), Space.parse("acme")];
    for (const space of [dev, acme]) await initSpace({ stateDir, space, permissionsOf, ports: systemPorts, pins });
    const launched = await existingSpace({ stateDir, space: dev, ports: systemPorts });
    const plan = { ...launched, stateDir, natsServer: "nats-server", replicas: 1, cluster: false, logs: folder };
    const commands = hintsFor(plan).map(({ command }) => command);
    expect(commands.at(-1)).toBe(`npx mesh-authority actor list --space dev --state ${stateDir}`);
  });
});

describe("before a start", () => {
  it("a port that is in use is named, with what to do", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const [free = 0] = await freePorts(1);
    const remedy = "choose another with --broker-port";
    const lines = await portsInUse([
      { port, purpose: "broker", remedy },
      { port: free, purpose: "gateway", remedy: "none" },
    ]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(new RegExp(`^port ${port} \\(broker\\) is in use: .*, or ${remedy}$`));
    server.close();
  });

  it("a port that two are to listen on is named, too", async () => {
    const [port = 0] = await freePorts(1);
    const lines = await portsInUse([
      { port, purpose: "gateway", remedy: "move it" },
      { port, purpose: "identity provider", remedy: "move that" },
    ]);
    expect(lines).toEqual([`port ${port} is wanted twice, for gateway and for identity provider: move that`]);
  });

  it("a state folder has one launcher at a time", async () => {
    const lock = await lockState(folder);
    const file = join(folder, "launch.lock");
    expect(await readFile(file, "utf8")).toBe(`${process.pid}\n`);
    await writeFile(file, `${process.ppid}\n`);
    await expect(lockState(folder)).rejects.toThrow(`in use by process ${process.ppid}`);
    await lock.release();
  });

  it("the lock of a launcher that was killed is taken over", async () => {
    await writeFile(join(folder, "launch.lock"), "999999999\n");
    const lock = await lockState(folder);
    await lock.release();
    await expect(readFile(join(folder, "launch.lock"))).rejects.toThrow("ENOENT");
  });

  it("flags are checked", () => {
    expect(parseStart(["--once", "--state", "/tmp/x", "--broker-port", "5222", "--replicas", "3"])).toMatchObject({
      once: true,
      json: false,
      stateDir: "/tmp/x",
      brokerPort: 5222,
      replicas: 3,
    });
    for (const wrong of [
      ["--broker-port", "70000"],
      ["--replicas", "0"],
      ["--gateway-port", "x"],
      ["--verbose"],
      ["more"],
    ]) {
      expect(() => parseStart(wrong)).toThrow();
    }
    expect(parseUp([])).not.toHaveProperty("brokerHost");
    expect(() => parseUp(["--broker-host", "mesh.example"])).toThrow("an IP address");
  });

  it.each([
    ["on loopback alone unless it is told", [], "127.0.0.1", "nats://127.0.0.1:4222"],
    [
      "everywhere, and services still reach it by loopback",
      ["--broker-host", "0.0.0.0"],
      "0.0.0.0",
      "nats://127.0.0.1:4222",
    ],
    ["on one address, where services follow", ["--broker-host", "10.1.2.3"], "10.1.2.3", "nats://10.1.2.3:4222"],
    ["on one of IPv6", ["--broker-host", "fd00::1"], "fd00::1", "nats://[fd00::1]:4222"],
  ])("the broker takes clients %s", async (_, argv, host, server) => {
    const stateDir = join(folder, "state");
    const acme = Space.parse("acme");
    await initSpace({ stateDir, space: acme, permissionsOf, ports: systemPorts, pins });
    const options = parseUp(["--state", stateDir, ...argv]);
    const space = await existingSpace({ ...options, ports: systemPorts });
    const specs = await processesOf({ ...space, ...options, space: acme, natsServer: "nats-server", logs: folder });
    const argsOf = (name: string) => specs.find((spec) => spec.name === name)?.args.join(" ");
    expect(argsOf("broker")).toContain(`-a ${host} -p 4222`);
    for (const name of ["custodian", "auth", "exchange", "callout", "gateway"]) {
      expect(argsOf(name)).toContain(`--servers ${server}`);
    }
  });
});
