import { describe, expect, it } from "vitest";
import { publicKeys, signingKey } from "../../../services/exchange/issuer-keys.ts";
import { type BearerAct, signBearer, validateBearer } from "../../../shared/bearer.ts";
import { BearerKeys } from "../../../shared/bearer-keys.ts";
import { newIssuerFile } from "../../../shared/secrets/issuer.ts";
import { CredentialId, Space, Uid } from "../../../shared/tokens.ts";
import { testPorts } from "../../kit/clock.ts";

const space = Space.parse("demo");
const ports = testPorts();

describe("issuer keys", () => {
  it("are published without their private half and without any other member", () => {
    const file = newIssuerFile(space, ports);
    const [key] = publicKeys(file);
    expect(Object.keys(key ?? {}).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x"]);
    expect(key).toMatchObject({ kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid: file.activeKid });
  });

  it("sign what their published half verifies", async () => {
    const file = newIssuerFile(space, ports);
    const act = {
      owner: "u_qzgcmqkl3272ed2stsjzbvrqga",
      actor: "cli",
      scope: [],
      lifecycleUid: Uid.parse("a".repeat(26)),
      credentialId: CredentialId.parse(`root-${"b".repeat(26)}`),
    } as object as BearerAct;
    const { token } = await signBearer(
      { issuer: file.issuer, space, act, notAfter: [] },
      await signingKey(file),
      ports,
    );
    const keys = new BearerKeys(async () => ({ issuer: file.issuer, keys: publicKeys(file) }), ports);
    const bearer = await validateBearer(token, space, (kid) => keys.of(kid), ports);
    expect(bearer.act).toEqual(act);
  });
});
