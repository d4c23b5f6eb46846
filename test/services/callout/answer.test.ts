import { expect, test } from "vitest";
import { admission, denial } from "../../../services/callout/answer.ts";
import { type ConnectRequest, openRequest } from "../../../services/callout/open.ts";
import { ServerKeys } from "../../../services/callout/server-keys.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { Server } from "./asking.ts";

const curve = createKeyPair("curve");
const server = new Server(curve.public);
const keys = { account: createKeyPair("account").public, signing: createKeyPair("account") };

function request(): ConnectRequest {
  const opened = openRequest(server.ask(), { keys: new ServerKeys(curve), now: Math.floor(Date.now() / 1_000) });
  if ("silent" in opened) throw new Error(opened.silent);
  return opened;
}

test("an admission carries the user's JWT, for this user, to this server, under the callout account", () => {
  const asked = request();
  const claims = server.read(admission(asked, "the.user.jwt", keys, systemPorts));
  expect(claims).toMatchObject({ iss: keys.signing.public, sub: asked.userNkey, aud: server.key.public });
  expect(claims.nats).toEqual({
    type: "authorization_response",
    version: 2,
    jwt: "the.user.jwt",
    issuer_account: keys.account,
  });
});

test("a denial carries code and reference, and no JWT", () => {
  const asked = request();
  const { nats } = server.read(denial(asked, { code: "expired", ref: "r1" }, keys, systemPorts));
  expect(nats).toEqual({
    type: "authorization_response",
    version: 2,
    error: "expired ref=r1",
    issuer_account: keys.account,
  });
});

test("no two boxes of one answer are equal", () => {
  const asked = request();
  const [one, other] = [0, 1].map(() => denial(asked, { code: "expired", ref: "r1" }, keys, systemPorts));
  expect(one).not.toEqual(other);
});
