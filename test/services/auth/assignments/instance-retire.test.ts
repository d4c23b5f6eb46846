import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { instanceRetire } from "../../../../shared/contracts/auth/assignments/instance-retire.ts";
import { instanceEndOpId, runHolder } from "../../../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { BARRIER } from "../../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import { epGateRows } from "../../../../shared/rows/gate.ts";
import { stageRows } from "../../../../shared/rows/stage.ts";
import { type EndpointLabel, Owner, principalOf, type Uid } from "../../../../shared/tokens.ts";
import type { Host } from "../../../kit/hosting.ts";
import { freshRunId } from "../../../kit/manager.ts";
import { serveCred } from "../../../kit/rows.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { credentialStates, freshOwner, requestId } from "../lifecycles.ts";
import { gateKeyOf, MANAGER, provisioned, stored } from "../scene.ts";
import { freezeByRegistration, instance } from "./instances.ts";

let space: TestSpace;
let custodian: Host;
/** An eviction of the space's own need not wait for what a callout may still admit. */
const LOCAL = Owner.parse("local");

beforeAll(async () => {
  space = await startSpace({ services: ["auth"], authTimeoutS: 1 });
  custodian = await space.host(["custodian"]);
});
afterAll(() => space.stop());

const retire = (instanceId: Uid, endpoint: EndpointLabel = MANAGER, deadlineMs = 15_000) =>
  space.operator.call(instanceRetire, { requestId: requestId(), endpoint, instanceId }, { once: true, deadlineMs });

it("revokes every row of the instance, retires its gate, then evicts whoever held one", async () => {
  const of = await instance(space, LOCAL);
  const { instanceId } = of;
  const opId = instanceEndOpId(instanceId);
  const { requestId: _requestId, ...answer } = await retire(instanceId);
  expect({ ...answer, evictedPrincipals: answer.evictedPrincipals.toSorted() }).toEqual({
    endpoint: "manager",
    instanceId,
    opId,
    retired: true,
    revokedRows: 3,
    evictedPrincipals: of.holders,
    evictionVerified: true,
  });
  expect(await credentialStates(space, { instanceId })).toEqual(["revoked", "revoked", "revoked"]);
  expect(await stored(space, gateKeyOf({ instanceId }))).toEqual({
    state: "retired",
    op: { opId, kind: "retirement" },
    generation: 1,
    processEpoch: 0,
    registrationRevision: 1,
    nameAuthorityRevision: 0,
    principal: of.principal,
  });
  const stage = await stored(space, stageRows.key({ opId }));
  expect(stage).toMatchObject({ phase: "finished", kind: "retirement", gate: gateKeyOf({ instanceId }).key });
  expect(stage.evicted.toSorted()).toEqual(of.holders);

  const before = await space.store.lastSeq("auth");
  const { requestId: _again, ...repeat } = await retire(instanceId);
  expect({ ...repeat, evictedPrincipals: repeat.evictedPrincipals.toSorted() }).toEqual({
    ...answer,
    evictedPrincipals: of.holders,
  });
  expect(await space.store.lastSeq("auth")).toBe(before);
});

it("names no more principals than a report holds, however many runs it had", async () => {
  const { instanceId } = await instance(space, LOCAL);
  const runs = Array.from({ length: BARRIER.reported }, () => freshRunId());
  const rows = runs.map((runId) => {
    const holderPrincipal = principalOf(LOCAL, runHolder(runId).actor);
    return serveCred(instanceId, { role: "runDriver", runId, holderPrincipal });
  });
  await Promise.all(
    rows.map((row) =>
      space.put(epCredRows.key({ endpoint: MANAGER, instanceId, credentialId: row.credentialId }), row),
    ),
  );
  const answer = await retire(instanceId);
  expect(answer).toMatchObject({ retired: true, revokedRows: BARRIER.reported + 3, evictionVerified: true });
  expect(answer.evictedPrincipals).toHaveLength(BARRIER.reported);
});

it("takes a registration's freeze over", async () => {
  const of = await instance(space, LOCAL);
  const registration = await freezeByRegistration(space, of);
  expect(await retire(of.instanceId)).toMatchObject({ retired: true, revokedRows: 3 });
  expect(await stored(space, stageRows.key({ opId: registration }))).toMatchObject({ phase: "aborted" });
  expect(await stored(space, gateKeyOf(of))).toMatchObject({
    state: "retired",
    op: { opId: instanceEndOpId(of.instanceId) },
  });
});

it("resumes what another process left frozen", async () => {
  const of = await instance(space, LOCAL);
  const opId = instanceEndOpId(of.instanceId);
  const registration = await freezeByRegistration(space, of);
  const stage = await stored(space, stageRows.key({ opId: registration }));
  await space.put(stageRows.key({ opId }), { ...stage, opId, kind: "retirement" });
  await space.put(gateKeyOf(of), {
    ...(await stored(space, gateKeyOf(of))),
    op: { opId, kind: "retirement" },
  });
  expect(await retire(of.instanceId)).toMatchObject({ retired: true, revokedRows: 3 });
});

it("ends a slot of `auth` that was given up", async () => {
  const former = await space.host(["auth"], () => ({ instance: "2" }));
  const key = (await space.store.scan(epGateRows, { endpoint: "auth" as string as EndpointLabel })).entries
    .map(({ key: { key } }) => epGateRows.parts(key)?.instanceId)
    .filter((instanceId) => instanceId !== undefined);
  await former.stop();
  const gone = key.find((instanceId) => former.lines.some((line) => line.includes(`"instance":"${instanceId}"`)));
  if (!gone) return expect.unreachable();
  expect(await retire(gone, "auth" as string as EndpointLabel)).toMatchObject({
    retired: true,
    evictionVerified: true,
  });
  await expect(space.host(["auth"], () => ({ instance: "2" }))).rejects.toMatchObject({ code: "failed-precondition" });
});

it("is not failed by an eviction that nobody verifies, and tries it again when it is repeated", async () => {
  const of = await instance(space, LOCAL);
  await custodian.stop();
  expect(await retire(of.instanceId, MANAGER, 2_000)).toMatchObject({ retired: true, evictionVerified: false });
  custodian = await space.host(["custodian"]);
  expect(await retire(of.instanceId)).toMatchObject({ retired: true, revokedRows: 3, evictionVerified: true });
});

describe("is refused, with nothing written,", () => {
  const refused = (code: ErrorCode, instanceId: Uid) => unchanged(space, code, () => retire(instanceId));

  it("for an instance that there is not (check 1)", async () => {
    await refused("not-found", newUid(systemPorts));
    const of = await instance(space, freshOwner());
    await unchanged(space, "not-found", () => retire(of.instanceId, "auth" as string as EndpointLabel));
  });

  it("for one that another operation ended, or holds (check 4)", async () => {
    const op = { opId: newUid(systemPorts), kind: "retirement" as const };
    const ended = await instance(space, freshOwner(), { state: "retired", op });
    await refused("conflict", ended.instanceId);
    const held = await instance(space, freshOwner(), { state: "frozen", op });
    await refused("conflict", held.instanceId);
    const taken = await instance(space, freshOwner(), { state: "frozen", op: { ...op, kind: "takeover" } });
    await refused("conflict", taken.instanceId);
  });

  it("to anybody but the operator", async () => {
    const { instanceId } = await instance(space, freshOwner());
    const args = { requestId: requestId(), endpoint: MANAGER, instanceId };
    const caller = await provisioned(space, "platform_host");
    await unchanged(space, "permission-denied", () =>
      space.clientAs(caller).call(instanceRetire, args, { once: true }),
    );
  });
});
