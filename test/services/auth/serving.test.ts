/** The serve connection of `auth` goes on from credential to credential, whatever others do to its records. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { actorList } from "../../../shared/contracts/auth/actors/actor-list.ts";
import { unavailable } from "../../../shared/errors.ts";
import { newNonce, systemPorts } from "../../../shared/ports.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { serviceSpecRows } from "../../../shared/rows/service.ts";
import { Store } from "../../../shared/store/store.ts";
import { EndpointLabel, type RequestId, type Uid } from "../../../shared/tokens.ts";
import type { Host } from "../../kit/hosting.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";

const AUTH = EndpointLabel.parse("auth");
/** Renewed after 4.5 s. */
const standingTtlS = 6;

let space: TestSpace;
let host: Host;
let instanceId: Uid;
/** Why `auth` ended, should it. */
let ended: string | undefined;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "exchange", "callout"] });
});
beforeEach(async () => {
  ended = undefined;
  host = await space.host(["auth"], () => ({ standingTtlS }));
  instanceId = await space.files.instanceId("1", systemPorts);
  void host.service("auth").ended.then((reason) => {
    ended = reason;
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await host.stop();
});
afterAll(() => space.stop());

const serving = (): number | undefined =>
  host.owned.list().find(({ label, ended: over }) => label === "serve:auth" && !over)?.tuple?.cid;

/** Serves on another connection than that one, and answers. */
async function servesAnew(before: number | undefined): Promise<void> {
  await vi.waitFor(() => expect([undefined, before]).not.toContain(serving()), { timeout: 12_000, interval: 50 });
  await space.operator.call(
    actorList,
    { requestId: newNonce(systemPorts) as string as RequestId },
    { deadlineMs: 2_000 },
  );
  expect(ended).toBeUndefined();
}

it("is renewed although somebody put a broker's answer in the place of its service record", async () => {
  const alice = await space.person("alice");
  const { connection } = await alice.connect();
  const spec = serviceSpecRows.key({ endpoint: AUTH, instanceId });
  // What everybody may ask, with a reply subject that nobody checks.
  const reply = `$KV.cotal_records_demo.${spec.key}`;
  connection.publish("$JS.API.STREAM.MSG.GET.KV_cotal_channels_demo", '{"seq":1}', { reply });
  await vi.waitFor(async () => expect((await space.store.inspect(spec)).state).toBe("unreadable"));
  await servesAnew(serving());
});

it("is tried again where the gate cannot be read: that is no later start", async () => {
  const before = serving();
  const gate = epGateRows.key({ endpoint: AUTH, instanceId }).key;
  const { read } = Store.prototype;
  let looks = 0;
  vi.spyOn(Store.prototype, "read").mockImplementation(function (this: Store, key, work) {
    // The first look is before the credential is minted, the second after it.
    if (key.key !== gate || ++looks !== 2) return read.call(this, key, work) as never;
    return Promise.reject(unavailable("no leader"));
  });
  await servesAnew(before);
  expect(looks).toBeGreaterThan(2);
});
