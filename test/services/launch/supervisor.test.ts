import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ProcessFailed } from "../../../services/launch/supervisor.ts";
import { LAUNCH } from "../../../shared/limits.ts";
import { behaviours, isAlive, type Stage, stage } from "./dummies.ts";

let on: Stage;
beforeEach(() => {
  on = stage();
});
afterEach(() => on.end());

const order = (event: string) => on.happenings.filter((h) => h.event === event).map((h) => h.process);

describe("a supervisor", () => {
  it("starts each process once those it needs are ready, and stops them the other way round", async () => {
    const supervisor = on.supervisor(
      on.spec("broker", behaviours.good),
      on.spec("auth", behaviours.good, ["broker"]),
      on.spec("gateway", behaviours.good, ["auth"]),
    );
    await supervisor.start();
    expect(order("ready")).toEqual(["broker", "auth", "gateway"]);
    expect(supervisor.said("auth")).toBe("ready");
    const pids = ["broker", "auth", "gateway"].map((name) => supervisor.pid(name));
    await supervisor.stop();
    expect(order("stopped")).toEqual(["gateway", "auth", "broker"]);
    expect(pids.map(isAlive)).toEqual([false, false, false]);
  });

  it("rejects a start and stops the rest when a process ends before it is ready, with the end of its log", async () => {
    const supervisor = on.supervisor(
      on.spec("broker", behaviours.good),
      on.spec("auth", behaviours.refusing, ["broker"]),
      on.spec("gateway", behaviours.good, ["auth"]),
    );
    const failure = await supervisor.start().catch((error) => error);
    expect(failure).toBeInstanceOf(ProcessFailed);
    expect(failure).toMatchObject({ process: "auth", exit: { code: 2, signal: null }, log: "the reason" });
    expect(order("starting")).toEqual(["broker", "auth"]);
    expect(order("stopped")).toContain("broker");
  });

  it("says so when a program is not there", async () => {
    const supervisor = on.supervisor({ ...on.spec("auth", ""), command: join(on.folder, "missing") });
    await expect(supervisor.start()).rejects.toThrow("auth ended before it was ready: ended with exit code 127");
  });

  it.each([1, 4])("restarts a process that ended with %i", async (code) => {
    const supervisor = on.supervisor(on.spec("auth", behaviours.dyingOnce(code, join(on.folder, "flag"))));
    await supervisor.start();
    await on.seen("auth", "ready", 2);
    expect(isAlive(supervisor.pid("auth"))).toBe(true);
  });

  it("restarts a process that was killed", async () => {
    const supervisor = on.supervisor(on.spec("auth", behaviours.good));
    await supervisor.start();
    const former = supervisor.pid("auth");
    process.kill(former ?? 0, "SIGKILL");
    await on.seen("auth", "ready", 2);
    expect(supervisor.pid("auth")).not.toBe(former);
    expect(on.happenings).toContainEqual({ process: "auth", event: "exited", exit: "signal SIGKILL" });
  });

  it.each([
    [0, "auth was closed by somebody else"],
    [2, "auth refuses its inputs, secrets, settings or a stream's shape"],
    [3, "auth was superseded by another start of its slot"],
  ])("stops everything when a process ended with %i", async (code, message) => {
    const supervisor = on.supervisor(
      on.spec("broker", behaviours.good),
      on.spec("auth", behaviours.dying(code), ["broker"]),
    );
    await supervisor.start();
    expect((await supervisor.failed).message).toBe(message);
    expect(isAlive(supervisor.pid("broker"))).toBe(false);
  });

  it("stops everything when a process ends again and again", async () => {
    const supervisor = on.supervisor(on.spec("broker", behaviours.good), on.spec("auth", behaviours.dying(1)));
    await supervisor.start();
    const times = LAUNCH.maxRestarts + 1;
    expect((await supervisor.failed).message).toBe(`auth ended ${times} times within 60 s, last with exit code 1`);
    expect(isAlive(supervisor.pid("broker"))).toBe(false);
  });

  it("can be stopped while it starts", async () => {
    const supervisor = on.supervisor(on.spec("broker", "setInterval(() => {}, 1e6)"), on.spec("auth", behaviours.good));
    const started = supervisor.start().catch((error) => error);
    await on.seen("broker", "starting");
    await supervisor.stop();
    expect(await started).toBeInstanceOf(Error);
    expect(isAlive(supervisor.pid("broker"))).toBe(false);
  });
});
