/** What one signature, verification and box costs alone, natively and with the JWT library's own cryptography. */
import { Algorithms, encodeUser } from "@nats-io/jwt";
import { createAccount, createCurve, fromPublic } from "@nats-io/nkeys";
import { validateBearer } from "../../shared/bearer.ts";
import { decodeJwt, encodeJwt, userClaims } from "../../shared/credentials/jwt.ts";
import { createKeyPair, verify } from "../../shared/credentials/nkeys.ts";
import { open, seal, sharedKey } from "../../shared/credentials/sealed.ts";
import { systemPorts } from "../../shared/ports.ts";
import { bearerIssuer, grant, space } from "../services/callout/people.ts";

const subjects = (prefix: string) => Array.from({ length: 6 }, (_, i) => `${prefix}.subject.number.${i}.>`);
/** Permissions of a JWT of about 1 KB. */
export const SMALL = { pub: { allow: subjects("publish") }, sub: { allow: subjects("subscribe") } };

/** Microseconds of CPU per call. */
async function cost(work: () => unknown, calls: number): Promise<number> {
  for (let i = 0; i < Math.min(calls, 50); i += 1) await work();
  const before = process.cpuUsage();
  for (let i = 0; i < calls; i += 1) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

export interface Costs {
  /** Microseconds of CPU of each alone. */
  readonly each: ReadonlyMap<string, number>;
  /** What one connect needs of them: its user JWT and the answer signed, bearer and request verified, a box each way. */
  readonly connectUs: number;
}

export async function costs(): Promise<Costs> {
  const [account, subject] = [createKeyPair("account"), createKeyPair("user").public];
  const permissions = { pub: { ...SMALL.pub, deny: [] }, sub: { ...SMALL.sub, deny: [] } };
  const user = { subject, name: "bench", issuerAccount: account.public, permissions, tags: [], iat: 1_800_000_000 };
  const claims = userClaims(user);
  const jwt = encodeJwt(claims, account);
  const [own, peer] = [createKeyPair("curve"), createKeyPair("curve")];
  const key = sharedKey(own, peer.public);
  const box = seal(key, Buffer.from(jwt), systemPorts.random(24));
  const issuer = await bearerIssuer();
  const bearer = await issuer.bearer(grant());
  const [libraryAccount, libraryCurve, libraryPeer] = [createAccount(), createCurve(), createCurve()];
  const libraryUser = fromPublic(subject);
  const plain = Buffer.from(jwt);
  const sign = () =>
    encodeUser("bench", libraryUser, libraryAccount, { ...SMALL }, { algorithm: Algorithms.v2 } as never);
  const libraryJwt = Buffer.from(await sign());
  const each = new Map([
    [`sign a JWT of ${jwt.length} bytes, natively`, await cost(() => encodeJwt(claims, account), 2_000)],
    ["verify it, natively", await cost(() => decodeJwt(jwt), 2_000)],
    ["validate a bearer", await cost(() => validateBearer(bearer, space, issuer.keyOf, systemPorts), 1_000)],
    ["seal it with a kept key", await cost(() => seal(key, plain, systemPorts.random(24)), 2_000)],
    ["open it with a kept key", await cost(() => open(key, box), 2_000)],
    ["compute a server's shared key", await cost(() => sharedKey(own, peer.public), 500)],
    ["sign a JWT with the JWT library", await cost(sign, 20)],
    ["verify it with the JWT library", await cost(() => libraryAccount.verify(plain, libraryJwt.subarray(0, 64)), 20)],
    ["seal it with the nkeys library", await cost(() => libraryCurve.seal(plain, libraryPeer.getPublicKey()), 50)],
  ]);
  return { each, connectUs: await connectCost(key) };
}

/** Sizes as a person's ordinary connect has them. */
async function connectCost(key: Uint8Array): Promise<number> {
  const account = createKeyPair("account");
  const [bytes, bytesOfAnswer, bytesOfRequest] = [4_900, 8_700, 1_400].map((length) => Buffer.alloc(length, 65));
  if (!bytes || !bytesOfAnswer || !bytesOfRequest) throw new Error("no bytes");
  const nonce = systemPorts.random(24);
  const [signature, box] = [account.sign(bytesOfRequest), seal(key, bytesOfRequest, nonce)];
  const parts = [
    await cost(() => account.sign(bytes), 1_000),
    await cost(() => account.sign(bytesOfAnswer), 1_000),
    (await cost(() => verify(account.public, bytesOfRequest, signature), 1_000)) * 2,
    await cost(() => open(key, box), 1_000),
    await cost(() => seal(key, bytesOfAnswer, nonce), 1_000),
  ];
  return parts.reduce((sum, part) => sum + part, 0);
}
