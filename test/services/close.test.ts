import { describe, expect, it } from "vitest";
import { OrderedClose } from "../../services/close.ts";
import type { HostedService, RunningService } from "../../services/service.ts";
import { OwnedConnections } from "../../shared/nats/owned.ts";
import { systemPorts } from "../../shared/ports.ts";

/** Names whose closing fails so many times. */
type Failures = Record<string, number>;

function stage(failures: Failures = {}) {
  const done: string[] = [];
  const step = (name: string) => async () => {
    done.push(name);
    const left = failures[name] ?? 0;
    if (left === 0) return;
    failures[name] = left - 1;
    throw new Error(`${name} failed`);
  };
  const service = (name: HostedService): RunningService => ({
    name,
    ready: () => true,
    drain: step(`drain ${name}`),
    close: step(`close ${name}`),
    ended: new Promise(() => {}),
  });
  const owned = new OwnedConnections({ servers: "nats://127.0.0.1:1" }, systemPorts);
  const faces = [{ name: "loopback", close: step("loopback") }];
  return { done, owned, close: new OrderedClose({ services: [service("auth"), service("exchange")], faces, owned }) };
}

describe("closing a process", () => {
  it("drains all services, then the faces, then gives up what the services hold", async () => {
    const { done, close } = stage();
    await close.run();
    expect(done).toEqual(["drain auth", "drain exchange", "loopback", "close auth", "close exchange"]);
  });

  it("does every step although earlier ones fail, and names them all", async () => {
    const { done, close } = stage({ loopback: 1, "close auth": 1 });
    const failure = await close.run().catch((error) => error);
    expect(failure).toBeInstanceOf(AggregateError);
    expect(failure.message).toBe("close: 2 of 5 failed: gateway:loopback, plane");
    expect(failure.errors.map((error: { connection: string }) => error.connection)).toEqual([
      "gateway:loopback",
      "plane",
    ]);
    expect(failure.errors[1].cause).toEqual(new Error("close auth failed"));
    expect(done).toContain("close exchange");
  });

  it("does what is left when it is called again, and nothing after it has succeeded", async () => {
    const { done, close } = stage({ "close auth": 1 });
    await expect(close.run()).rejects.toThrow("close: 1 of 5 failed: plane");
    done.length = 0;
    await close.run();
    await close.run();
    expect(done).toEqual(["close auth"]);
  });

  it("is one attempt for all who ask at once", async () => {
    const { done, close } = stage();
    await Promise.all([close.run(), close.run()]);
    expect(done).toHaveLength(5);
  });

  it("opens nothing afterwards", async () => {
    const { close, owned } = stage();
    await close.run();
    const user = () => {
      throw new Error("not asked");
    };
    await expect(owned.open("callout", { name: "late", user, reconnect: false })).rejects.toMatchObject({
      code: "unavailable",
    });
  });
});
