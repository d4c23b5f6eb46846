/** Contract artifacts on `P.epc.<64 hex>`: documents and manifests under their own digest, written once (wire §6). */
import { type Json, sha256Hex } from "../canonical.ts";
import { internal } from "../errors.ts";
import { CONTRACT } from "../limits.ts";
import { type Digest, Hex64 } from "../tokens.ts";
import { type Family, jsonIn, type Key } from "./family.ts";

const artifacts: Family<Json> = {
  stream: "contracts",
  decode: (key, body) => (sha256Hex(body) === key ? jsonIn(body, CONTRACT.maxDocumentBytes) : undefined),
  lifetime: () => undefined,
  admits: (from) => from === undefined,
  refusal: (key, fault) => internal(`artifact ${key} is not what its name says: ${fault}`),
};

export const artifactRows = {
  key(digest: Digest): Key<Json> {
    const key = digest.slice("sha256:".length);
    if (!Hex64.is(key)) throw internal("no artifact digest");
    return { stream: artifacts.stream, family: artifacts, key };
  },
};
