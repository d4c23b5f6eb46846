/** Runtimes are the mesh's: the authority catalogues both questions about them and answers neither (operations §8). */
import { AuthorityError } from "../../../shared/errors.ts";
import { checkRegistration, type ProvenArgs } from "../registration/check.ts";
import { managing, type Visit } from "../visit.ts";
import { assertOwnTarget, type Target } from "./target.ts";

export async function refuseRuntime(given: Visit<ProvenArgs & { readonly target: Target }>): Promise<never> {
  const visit = managing(given);
  await checkRegistration(visit);
  assertOwnTarget(visit);
  throw new AuthorityError("unimplemented", "the authority hosts no runtimes");
}
