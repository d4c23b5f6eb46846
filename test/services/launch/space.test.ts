import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { developmentSpace, existingSpace } from "../../../services/launch/space.ts";
import { initSpace } from "../../../services/offline/init.ts";
import { permissionsOf } from "../../../shared/credentials/user-permissions.ts";
import { systemPorts as ports } from "../../../shared/ports.ts";
import { Space } from "../../../shared/tokens.ts";

let stateDir: string;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "launch-space-"));
});
afterEach(() => rm(stateDir, { recursive: true }));

const init = (name: string) => initSpace({ stateDir, space: Space.parse(name), permissionsOf, ports });

it("npm start keeps to its own space when `init` has made others beside it", async () => {
  expect(await developmentSpace({ stateDir, ports })).toMatchObject({ space: "dev", created: true });
  await init("acme");
  expect(await developmentSpace({ stateDir, ports })).toMatchObject({ space: "dev", created: false });
  await expect(existingSpace({ stateDir, ports })).rejects.toThrow("name one with --space: acme, dev");
});

it("npm start refuses a space that is not for development", async () => {
  await init("acme");
  await expect(developmentSpace({ stateDir, ports })).rejects.toThrow("not for development");
});
