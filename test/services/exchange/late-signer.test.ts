import { afterAll, beforeAll, expect, it } from "vitest";
import { exchangeUser } from "../../../shared/contracts/exchange/exchange-user.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { credRows } from "../../../shared/rows/credential.ts";
import { headRows } from "../../../shared/rows/head.ts";
import { login, ownerOf, seconds } from "../../kit/logins.ts";
import { pauseRead } from "../../kit/pause.ts";
import { unchanged } from "../../kit/unchanged.ts";
import { type ExchangeSpace, startExchangeSpace } from "./asking.ts";
import { activate } from "./ledger.ts";

let exchange: ExchangeSpace;
/** How far the exchange's clock is ahead, ms. */
let ahead = 0;
beforeAll(async () => {
  exchange = await startExchangeSpace({ deps: { ports: { ...systemPorts, now: () => Date.now() + ahead } } });
});
afterAll(() => exchange.stop());

it("a signer delayed past what its proof has left signs nothing, and one delayed less signs what is left", async () => {
  const { space } = exchange;
  const owner = await ownerOf(space, "alice");
  const row = await activate(space, owner, "cli");
  const head = await space.store.read(headRows.key(row));
  const root = credRows.key({ uid: row.lifecycleUid, credentialId: head?.value.currentCredentialId ?? ("" as never) });
  const exp = seconds() + 20;

  /** An exchange whose last read takes so long. */
  const delayed = async (ms: number) => {
    const pause = pauseRead(root.key);
    const asking = space.gateway.call(
      exchangeUser,
      { actor: row.actor },
      { once: true, auth: login("alice", { exp }) },
    );
    asking.catch(() => {});
    await pause.reached;
    ahead = ms;
    pause.resume();
    return asking.finally(() => {
      ahead = 0;
    });
  };

  expect((await delayed(12_000)).exp).toBe(exp);
  await unchanged(space, "expired", () => delayed(17_000));
});
