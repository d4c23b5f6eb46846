import { expect, it } from "vitest";
import type { AuthContext } from "../../../../services/auth/context.ts";
import { credential, mint } from "../../../../services/auth/issue/mint.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { LIFE } from "../../../../shared/limits.ts";
import type { EpGate } from "../../../../shared/rows/gate.ts";
import { AccountNkey, Actor, EndpointLabel, Owner, Principal, Uid, UserNkey } from "../../../../shared/tokens.ts";
import { space } from "../../../kit/bindings.ts";
import { testPorts } from "../../../kit/clock.ts";

const account = createKeyPair("account");
const instanceId = Uid.parse("i".repeat(26));
const gate: EpGate = {
  state: "open",
  generation: 1,
  processEpoch: 0,
  registrationRevision: 7,
  nameAuthorityRevision: 0,
  principal: Principal.parse(`local.auth_serve_${instanceId}`),
};
const wanted = credential({
  name: "serve",
  role: "serve",
  profile: "service-serve",
  key: UserNkey.parse(createKeyPair("user").public),
  holder: { owner: Owner.parse("local"), actor: Actor.parse(`auth_serve_${instanceId}`), uid: instanceId },
  bindings: { instanceId, epoch: 0 },
});

/** In the middle of a second. */
const NOW = 1_800_000_000_500;

function minted(standingTtlS: number, boundMs: readonly number[] = []) {
  const data = { account: AccountNkey.parse(account.public), signer: account, proofKeys: [] };
  const context = { space, data, ports: testPorts(NOW), standingTtlS } as unknown as AuthContext;
  return mint(context, { endpoint: EndpointLabel.parse("auth"), instanceId, gate }, wanted, { boundMs });
}

it("mints the shortest life that may be configured, in the middle of a second as well", () => {
  const { signed, row } = minted(LIFE.minStandingTtlS);
  expect(signed.exp).toBe(Math.floor(NOW / 1_000) + LIFE.minStandingTtlS);
  expect(row.value.exp).toBe(signed.exp * 1_000);
});

it("mints no longer than what bounds it, and refuses what has less than five seconds left", () => {
  expect(minted(900, [NOW + 5_000]).signed.exp).toBe(1_800_000_005);
  expect(() => minted(900, [NOW + 4_999])).toThrow(expect.objectContaining({ code: "expired" }));
});
