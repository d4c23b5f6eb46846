/** What stands beside the barriers of a round: leftover connections, refusals, rows. */
import type { NatsConnection } from "@nats-io/nats-core";
import { expect, vi } from "vitest";
import { encodeJwt, identityTags, userClaims } from "../../shared/credentials/jwt.ts";
import { createKeyPair, keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { AuthorityError, type ErrorCode, isAuthorityError } from "../../shared/errors.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { type Principal, splitPrincipal, type Triple } from "../../shared/tokens.ts";
import type { TestSpace } from "../kit/space.ts";
import { PATIENCE } from "./space.ts";

export const actor = (principal: Principal): Triple => ({ ...splitPrincipal(principal), uid: newUid(systemPorts) });

/** A connection under a JWT that was signed for that principal before, and ends with the first kick. */
export async function leftBehind(space: TestSpace, { owner, actor: name, uid }: Triple): Promise<NatsConnection> {
  const { pub, signingSeed } = (await loadSecret(space.secrets, space.space, SECRET.serviceKeys)).dataAccount;
  const key = createKeyPair("user");
  const claims = userClaims({
    subject: key.public,
    name: "left-behind",
    issuerAccount: pub,
    permissions: { pub: { allow: [], deny: [">"] }, sub: { allow: [], deny: [">"] } },
    tags: identityTags(owner, name, uid),
    iat: Math.floor(systemPorts.now() / 1_000),
  });
  const user = { jwt: encodeJwt(claims, keyPairFromSeed(signingSeed)), key };
  return space.enter("left-behind", user, { reconnect: false });
}

export async function refused(code: ErrorCode, work: () => Promise<unknown>): Promise<void> {
  const error: unknown = await work().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(AuthorityError);
  expect(error).toMatchObject({ code });
}

/** Asks again while the answer is that it is not confirmed, as every caller does, until it is what it must be. */
export async function confirmed(ask: () => Promise<unknown>, what: string, expected: object): Promise<void> {
  let refusal: unknown;
  const answered = async () => {
    const answer = await ask().catch((error: unknown) => {
      if (!isAuthorityError(error, "unavailable")) refusal = error;
      if (refusal === undefined) throw error;
    });
    if (refusal === undefined) expect(answer, what).toMatchObject(expected);
  };
  await vi.waitFor(answered, PATIENCE);
  if (refusal !== undefined) throw refusal;
}
