import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { OwnedConnections, runCloseSteps } from "../../../shared/nats/owned.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { config, user } from "./one-account.ts";

let broker: Broker;
let owned: OwnedConnections;

beforeAll(async () => {
  broker = await startBroker({ config: config(), jetstream: false });
});
afterEach(() => runCloseSteps(owned.closeSteps("")).catch(() => {}));
afterAll(() => broker.stop());

function open(label: Parameters<OwnedConnections["open"]>[0], reconnect = false) {
  const own = user();
  return owned.open(label, { name: label, user: () => own, reconnect });
}

describe("owned connections", () => {
  it("lists what is open as a detached copy, with the tuple of each", async () => {
    owned = new OwnedConnections({ servers: broker.url }, systemPorts);
    const connection = await open("work:auth");
    const [entry, ...others] = owned.list();
    expect(others).toEqual([]);
    expect(entry).toMatchObject({ label: "work:auth", ended: false, tuple: { cid: connection.info?.client_id } });
    expect(entry?.openedAt).toBeLessThanOrEqual(Date.now());
    owned.list().pop();
    expect(owned.list()).toHaveLength(1);
  });

  it("closes in the order given, each kind by its prefix, and ends", async () => {
    owned = new OwnedConnections({ servers: broker.url }, systemPorts);
    for (const label of ["serve:auth", "store:auth", "work:exchange", "work:auth"] as const) await open(label);
    const ended = owned.ended();
    const steps = owned.closeSteps("callout", "work:", "store:", "serve:");
    expect(steps.map(({ label }) => label)).toEqual(["work:exchange", "work:auth", "store:auth", "serve:auth"]);
    await runCloseSteps(steps);
    await ended;
    expect(owned.list().map((entry) => entry.ended)).toEqual([true, true, true, true]);
    expect(owned.closeSteps("")).toEqual([]);
  });

  it("hands over what is buffered before it closes", async () => {
    owned = new OwnedConnections({ servers: broker.url }, systemPorts);
    const reader = await open("work:exchange");
    const heard = new Promise((resolve) => reader.subscribe("last", { max: 1, callback: resolve }));
    await reader.flush();
    const writer = await open("work:auth");
    writer.publish("last");
    await runCloseSteps(owned.closeSteps("work:auth"));
    await heard;
  });

  it("marks one that the broker ended, and forgets it when its label is opened again", async () => {
    owned = new OwnedConnections({ servers: broker.url }, systemPorts);
    const first = await open("scan:authority");
    await broker.restart();
    await first.closed();
    expect(owned.list()).toMatchObject([{ label: "scan:authority", ended: true }]);
    await open("scan:authority");
    expect(owned.list()).toMatchObject([{ label: "scan:authority", ended: false }]);
  });

  it("closes at once while the broker is gone", async () => {
    owned = new OwnedConnections({ servers: broker.url }, systemPorts);
    const connection = await open("work:auth", true);
    await broker.kill();
    await expect.poll(() => connection.isClosed() || connection.info).toBeTruthy();
    for await (const { type } of connection.status()) if (type === "disconnect" || type === "reconnecting") break;
    await runCloseSteps(owned.closeSteps(""));
    expect(owned.list()).toMatchObject([{ ended: true }]);
    await broker.restart();
  });

  it("opens nothing more once sealed, and leaves nothing open of what was under way", async () => {
    owned = new OwnedConnections({ servers: broker.url }, systemPorts);
    const late = open("work:auth");
    owned.seal();
    const closing = expect.objectContaining({ code: "unavailable" });
    await expect(late).rejects.toThrowError(closing);
    await expect(open("store:auth")).rejects.toThrowError(closing);
    await owned.ended();
    expect(owned.list().filter(({ ended }) => !ended)).toEqual([]);
  });

  it("runs every step though some fail, and names those", async () => {
    const ran: string[] = [];
    const step = (label: string, cause?: Error) => ({
      label,
      run: async () => {
        ran.push(label);
        if (cause) throw cause;
      },
    });
    const [one, two] = [new Error("one"), new Error("two")];
    const failed = await runCloseSteps([step("a", one), step("b"), step("plane", two)]).catch(
      (error: unknown) => error,
    );
    expect(ran).toEqual(["a", "b", "plane"]);
    expect(failed).toBeInstanceOf(AggregateError);
    expect(failed).toMatchObject({
      message: "close: 2 of 3 failed: a, plane",
      errors: [
        { connection: "a", cause: one },
        { connection: "plane", cause: two },
      ],
    });
  });

  it.each([false, true])(
    "refuses a broker that takes no long lines, and leaves nothing open (reconnect: %s)",
    async (reconnect) => {
      const short = await startBroker({ config: `${config()}\nmax_control_line: 32768`, jetstream: false });
      owned = new OwnedConnections({ servers: short.url }, systemPorts);
      await expect(open("work:auth", reconnect)).rejects.toMatchObject({
        code: "failed-precondition",
        reason: expect.stringContaining("max_control_line"),
      });
      expect(owned.list()).toEqual([]);
      await short.stop();
    },
  );
});
