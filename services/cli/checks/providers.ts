/** Whether a login of each identity provider could be verified (identity §2). */
import { systemPorts } from "../../../shared/ports.ts";
import { fetchKeys, fits } from "../../../shared/provider-keys.ts";
import type { Folder } from "../../../shared/secrets/folder.ts";
import { ALGORITHMS, DEFAULT_ALGORITHMS, type IdpPin } from "../../../shared/secrets/pins.ts";
import type { Space } from "../../../shared/tokens.ts";
import { readPins } from "../../offline/pins.ts";
import { whyOf } from "../failure.ts";
import { bad, type Finding, good } from "./finding.ts";

/** Nothing where none is pinned, which is a finding about the file. */
export async function providerFindings(folder: Folder, space: Space): Promise<Finding[]> {
  return Promise.all((await readPins({ folder, space })).map(providerFinding));
}

async function providerFinding(pin: IdpPin): Promise<Finding> {
  const { issuer, audience, jwksUri = "", algorithms = DEFAULT_ALGORITHMS } = pin;
  const check = `identity provider ${issuer}`;
  try {
    const keys = pin.keys ?? (await fetchKeys(jwksUri, systemPorts));
    const usable = ALGORITHMS.filter((alg) => keys.some((key) => fits(key, alg)));
    if (usable.some((alg) => algorithms.includes(alg))) return good(check, `keys for ${usable.join(", ")}`);
    const found = `its keys are for ${usable.join(", ") || "nothing that we verify"}, the pin says ${algorithms.join(", ")}`;
    const keysAt = pin.keys ? "--keys FILE" : `--jwks ${jwksUri}`;
    const again = `idp add ${issuer} --audience ${audience} ${keysAt} --algorithm ${usable.join(",") || "…"} --replace`;
    return bad(check, found, `run ${again}, then restart exchange`);
  } catch (error) {
    return bad(
      check,
      `${jwksUri}: ${whyOf(error)}`,
      "make that address answer, or name another by idp add … --replace",
    );
  }
}
