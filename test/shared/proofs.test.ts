import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { currentRegistrationProof, declarationProof } from "../../shared/proofs.ts";
import { sameText } from "../../shared/same-text.ts";

const vectors = JSON.parse(readFileSync(new URL("../vectors/proofs.json", import.meta.url), "utf8"));

test("the declaration proof has its known answers", () => {
  for (const { artifacts, proof } of vectors.declaration) {
    expect(declarationProof({ ...vectors, contractArtifacts: artifacts })).toBe(proof);
  }
});

test("the current-registration proof has its known answers", () => {
  for (const { keyText, proof, ...coordinates } of vectors.current) {
    expect(currentRegistrationProof({ ...vectors, ...coordinates }, keyText)).toBe(proof);
  }
});

test("the order in which identities were sent changes no proof", () => {
  const reversed = Object.fromEntries(Object.entries(vectors.identities).reverse());
  expect(declarationProof({ ...vectors, identities: reversed })).toBe(vectors.declaration[0].proof);
});

test("a proof of another length is unequal, not a fault", () => {
  expect(sameText("sha256:ab", vectors.current[0].proof)).toBe(false);
});
