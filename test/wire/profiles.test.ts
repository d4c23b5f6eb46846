/** Every row of the matrix against a real broker: what it must do passes, its neighbours are refused (state §6, rule 6). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { person } from "../kit/bindings.ts";
import { type Mesh, startMesh } from "../kit/mesh.ts";
import { type Probe, run } from "../kit/probe.ts";
import { managers } from "./probes/managers.ts";
import { people } from "./probes/people.ts";
import { provisioned } from "./probes/provisioned.ts";
import { runs } from "./probes/runs.ts";
import { self } from "./probes/self.ts";

const PROBES: Probe[] = [...people, ...managers, ...runs, ...provisioned, ...self];

let mesh: Mesh;
beforeAll(async () => {
  mesh = await startMesh();
});
afterAll(() => mesh?.stop());

describe("each profile, live", () => {
  it.each(PROBES.map((probe) => [probe.name, probe] as const))("%s", async (_, probe) => {
    expect(await run(mesh, probe)).toEqual({ refused: [], passed: [] });
  });

  it("would be noticed if it were too narrow or too wide", async () => {
    const [probe] = people;
    if (!probe) throw new Error("no probe");
    const wrong: Probe = {
      ...probe,
      publish: ["cotal.{s}.chat.{o}.other.general"],
      subscribe: ["cotal.{s}.svc.>"],
      notPublish: ["$JS.API.INFO"],
      notSubscribe: ["cotal.{s}.chat.*.*.general"],
    };
    expect(await run(mesh, wrong)).toEqual({
      refused: ["cotal.demo.svc.>", `cotal.demo.chat.${person}.other.general`],
      passed: ["$JS.API.INFO", "cotal.demo.chat.*.*.general"],
    });
  });
});
