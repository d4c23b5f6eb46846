/** Every row of the matrix against a real broker: what it must do passes, its neighbours are refused (state §6, rule 6). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Mesh, startMesh } from "../kit/mesh.ts";
import { run } from "../kit/probe.ts";
import { people } from "./probes/people.ts";

let mesh: Mesh;
beforeAll(async () => {
  mesh = await startMesh();
});
afterAll(() => mesh?.stop());

describe("each profile, live", () => {
  it.each([...people].map((probe) => [probe.name, probe] as const))("%s", async (_, probe) => {
    expect(await run(mesh, probe)).toEqual({ refused: [], passed: [] });
  });
});
