import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerTransferReader } from "../../../../shared/contracts/auth/manager/transfer-reader.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { UserNkey } from "../../../../shared/tokens.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { asks } from "../hear.ts";
import { expectRow, itIssues, rowOf } from "../issuing.ts";

let space: TestSpace;
let manager: TestManager;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange"] });
  manager = await space.manager(await space.person("alice", { scope: ["supervise"] }));
});
afterAll(() => space.stop());

const args = (of: TestManager, key = createKeyPair("user")): Input<typeof managerTransferReader> => ({
  ...of.envelope(),
  kind: "manager-service-authority",
  operation: "transferReader",
  registrationProof: of.declaration(),
  transferReader: { id: UserNkey.parse(key.public) },
});

itIssues({
  operation: managerTransferReader,
  proof: "U",
  scene: () => ({ space, manager, person: manager.person }),
  args,
});

describe("a transfer reader", () => {
  it("is issued for 300 s under a key of its own", async () => {
    const request = args(manager);
    const answer = await manager.client.call(managerTransferReader, request);
    const { transferReader } = answer.credentials;
    expect(answer).toMatchObject({
      operation: "transferReader",
      registrationProof: request.registrationProof,
      expiresAt: transferReader.exp * 1_000,
    });
    expect(transferReader.exp - Math.floor(answer.issuedAt / 1_000)).toBe(300);
    await expectRow(space, manager, "transferReader", transferReader, { credentialKey: request.transferReader.id });
  });

  it("reads the instance's own bucket and no other stream", async () => {
    const bucket = `cotal_xfer_demo_${manager.instanceId}`;
    const streams = (await jetstreamManager(space.roots.space)).streams;
    await streams.add({ name: `OBJ_${bucket}`, subjects: [`$O.${bucket}.>`], allow_direct: true });
    space.roots.space.publish(`$O.${bucket}.C.chunk`, "bytes");
    const key = createKeyPair("user");
    const { transferReader } = (await manager.client.call(managerTransferReader, args(manager, key))).credentials;
    const reading = await manager.connectAs(transferReader.jwt, key);
    await asks(reading, `STREAM.INFO.OBJ_${bucket}`);
    const chunk = await reading.request(`$JS.API.DIRECT.GET.OBJ_${bucket}.$O.${bucket}.C.chunk`, "", {
      timeout: 1_000,
    });
    expect(chunk.string()).toBe("bytes");
    await expect(asks(reading, "STREAM.INFO.KV_cotal_records_demo")).rejects.toThrow();
  });

  it("is another one at each repeat", async () => {
    const request = args(manager);
    const jwts = new Set<string>();
    for (const _ of [1, 2]) {
      const { transferReader } = (await manager.person.ask(managerTransferReader, request)).credentials;
      jwts.add(transferReader.jwt);
      expect((await rowOf(space, manager, transferReader.jwt))?.value.state).toBe("active");
    }
    expect(jwts.size).toBe(2);
  });
});
