import { describe, expect, it, vi } from "vitest";
import { OrderedClose } from "../../services/close.ts";
import type { HostedService, RunningService } from "../../services/service.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { OwnedConnections } from "../../shared/nats/owned.ts";
import { systemPorts } from "../../shared/ports.ts";
import { startBroker } from "../kit/broker.ts";

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

  it("leaves nothing open that was being opened meanwhile", async () => {
    const broker = await startBroker({ jetstream: false });
    const owned = new OwnedConnections({ servers: broker.url }, systemPorts);
    const user = { jwt: "", key: createKeyPair("user") };
    const open = () => owned.open("work:auth", { name: "work", user: () => user, reconnect: true });
    const connection = await open();
    let late: Promise<unknown> = Promise.resolve();
    const auth: RunningService = {
      name: "auth",
      ready: () => true,
      drain: async () => {},
      async close() {
        late = open().catch((error: unknown) => error);
        // Its end is told a little after it was asked for.
        vi.spyOn(connection, "drain").mockImplementation(async () => {
          await late;
          await connection.close();
        });
      },
      ended: new Promise(() => {}),
    };
    await new OrderedClose({ services: [auth], faces: [], owned }).run();
    expect(await late).toMatchObject({ code: "unavailable" });
    expect(owned.list().map(({ ended }) => ended)).not.toContain(false);
    await broker.stop();
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
