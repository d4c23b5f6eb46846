/** A retirement is asked of a replica that does not hold the plane claim: it says why it runs none (lifecycles §1.2). */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { AfterStep } from "../../../../services/auth/barrier/kinds.ts";
import { actorRevoke } from "../../../../shared/contracts/auth/actors/actor-revoke.ts";
import { AuthorityError, type PlaneRefusal } from "../../../../shared/errors.ts";
import { Owner } from "../../../../shared/tokens.ts";
import type { Host } from "../../../kit/hosting.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { type Lifecycle, lifecycle, named, rowsOf } from "../lifecycles.ts";

/** What the callout may still admit need not be waited for. */
const owner = Owner.parse("local");
const WITHIN = { timeout: 10_000, interval: 20 };

let space: TestSpace;
let holder: Host;
let asked: Host;
let release: () => void = () => {};
beforeAll(async () => {
  space = await startSpace({ authTimeoutS: 1 });
  const stuck = new Promise<void>((resolve) => {
    release = resolve;
  });
  const afterStep: AfterStep = ({ kind }) => (kind === "retirement" ? stuck : Promise.resolve());
  holder = await space.host(["auth"], () => ({ instance: "1", afterStep }));
  await holds(holder);
  asked = await space.host(["auth"], () => ({ instance: "2" }));
  await holder.service("auth").drain(); // keeps its claim, and is asked nothing any more
});
afterAll(async () => {
  release();
  await space.stop();
});

const holds = (host: Host) => vi.waitFor(() => expect(told(host, "this replica runs retirements")).toBe(true), WITHIN);
const told = ({ lines }: Host, text: string): boolean => lines.some((line) => line.includes(text));

async function unconfirmed(of: Lifecycle): Promise<AuthorityError> {
  const asking = space.operator.call(actorRevoke, named(of), { deadlineMs: 1_000, once: true });
  const error = await asking.catch((thrown: unknown) => thrown);
  return error instanceof AuthorityError ? error : expect.unreachable();
}

async function expectRefused(reason: PlaneRefusal): Promise<void> {
  const of = await lifecycle(space, { owner, kind: "interactive" });
  expect(await unconfirmed(of)).toMatchObject({
    code: "unavailable",
    outcome: "unknown",
    details: [{ kind: "ai.cotal.auth.plane-claim-refused", reason }],
  });
  // Denied all the same.
  expect(await rowsOf(space, of)).toMatchObject({
    actor: { state: "revoked" },
    head: { state: "retiring" },
    gate: { state: "frozen", op: { opId: of.opId } },
    stage: { phase: "frozen" },
  });
}

it("`unknown`, from its first second on, while nobody can say whether the holder lives", async () => {
  await expectRefused("unknown");
});

it("`live-peer` where another one holds it and does not get on", async () => {
  const custodian = await space.host(["custodian"]);
  await vi.waitFor(() => expect(told(asked, "another replica runs retirements")).toBe(true), {
    ...WITHIN,
    timeout: 20_000,
  });
  await expectRefused("live-peer");
  await custodian.stop();
});
