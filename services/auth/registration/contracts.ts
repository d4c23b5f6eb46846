/** Reads a registered contract back from its stream, every digest verified (wire §6, §8 step 1). */
import type { Json } from "../../../shared/canonical.ts";
import type { ClusterDocument } from "../../../shared/contracts/operation.ts";
import { type RegisteredContract, readClosure } from "../../../shared/contracts/profile.ts";
import { AuthorityError, isAuthorityError } from "../../../shared/errors.ts";
import { artifactRows } from "../../../shared/rows/artifact.ts";
import type { Digest } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";

export type { ClusterDocument, RegisteredContract };

/** `absentCode` names the refusal of a closure that is not there or not what its digest says. */
export async function registeredContract(
  context: AuthContext,
  clusterDigest: Digest,
  absentCode: "contract-invalid" | "failed-precondition",
  work: Work,
): Promise<RegisteredContract> {
  const load = async (digest: Digest): Promise<Json> => {
    const artifact = await context.store.read(artifactRows.key(digest), work).catch((error: unknown) => {
      if (isAuthorityError(error, "internal")) return undefined;
      throw error;
    });
    if (!artifact) throw new AuthorityError(absentCode, "a contract artifact is missing or not what its digest says");
    return artifact.value;
  };
  return readClosure(clusterDigest, load);
}
