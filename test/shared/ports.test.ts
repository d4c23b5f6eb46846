import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { systemPorts } from "../../shared/ports.ts";

describe("random bytes", () => {
  it("are as many as asked for, and never the same twice", () => {
    const seen = new Set<string>();
    let drawn = 0;
    for (const bytes of [16, 20, 1, 4_000, 33, 4_096, 5_000, ...Array<number>(600).fill(16)]) {
      const random = systemPorts.random(bytes);
      expect(random).toHaveLength(bytes);
      if (bytes < 16) continue;
      for (let at = 0; at + 16 <= bytes; at += 16) {
        seen.add(Buffer.from(random.subarray(at, at + 16)).toString("hex"));
        drawn += 1;
      }
    }
    expect(seen.size).toBe(drawn);
  });

  it("are refused for what is no count, and none is given out again for it", () => {
    for (const bytes of [-16, 0.5, Number.NaN]) expect(() => systemPorts.random(bytes)).toThrow(RangeError);
    expect(systemPorts.random(16)).not.toEqual(new Uint8Array(16));
  });

  it("are the caller's own", () => {
    const one = systemPorts.random(16);
    const copy = Uint8Array.from(one);
    systemPorts.random(16).fill(0);
    systemPorts.random(8_192);
    expect(one).toEqual(copy);
    expect(one.buffer.byteLength).toBe(16);
  });
});

describe("a wait", () => {
  it("ends in time, and leaves nothing at its signal", async () => {
    const { signal } = new AbortController();
    await systemPorts.sleep(1, signal);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("ends with the signal's reason, under way and before", async () => {
    const stop = new AbortController();
    const waiting = systemPorts.sleep(60_000, stop.signal);
    stop.abort("over");
    await expect(waiting).rejects.toBe("over");
    await expect(systemPorts.sleep(60_000, stop.signal)).rejects.toBe("over");
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  });
});
