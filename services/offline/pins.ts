/** Which identity providers a space believes, changed beside its services (identity §2). A start of `exchange` reads them. */
import { AuthorityError } from "../../shared/errors.ts";
import { IDP } from "../../shared/limits.ts";
import type { Folder } from "../../shared/secrets/folder.ts";
import { type IdpPin, PinFile } from "../../shared/secrets/pins.ts";
import { spaceFolder } from "../../shared/secrets/store.ts";
import type { Space } from "../../shared/tokens.ts";

interface Place {
  readonly folder: Folder;
  readonly space: Space;
}

const fileOf = (space: Space): string => `${spaceFolder(space)}/idp.json`;

/** Those there are; none before the first was added. */
export async function readPins({ folder, space }: Place): Promise<readonly IdpPin[]> {
  const bytes = await folder.read(fileOf(space), "public");
  return bytes === undefined ? [] : PinFile.decode(`${folder.path}/${fileOf(space)}`, bytes).pins;
}

/** `already-exists` where the issuer is pinned, unless that pin is to be replaced. */
export async function addPin(place: Place, pin: IdpPin, replace: boolean): Promise<readonly IdpPin[]> {
  const pins = await readPins(place);
  const known = pins.some(({ issuer }) => issuer === pin.issuer);
  if (known && !replace) throw new AuthorityError("already-exists", "this issuer is pinned: --replace changes its pin");
  if (!known && pins.length >= IDP.maxPins) {
    throw new AuthorityError(
      "failed-precondition",
      `a space believes ${IDP.maxPins} providers at most: remove one first`,
    );
  }
  return write(place, known ? pins.map((one) => (one.issuer === pin.issuer ? pin : one)) : [...pins, pin]);
}

/** `not-found` for an issuer that is not pinned; the last one stays, since nobody could log in. */
export async function removePin(place: Place, issuer: string): Promise<readonly IdpPin[]> {
  const pins = await readPins(place);
  const rest = pins.filter((pin) => pin.issuer !== issuer);
  if (rest.length === pins.length)
    throw new AuthorityError("not-found", "no such issuer: `idp list` shows those there are");
  if (rest.length === 0)
    throw new AuthorityError("failed-precondition", "it is the only provider: add another one first");
  return write(place, rest);
}

async function write({ folder, space }: Place, pins: readonly IdpPin[]): Promise<readonly IdpPin[]> {
  await folder.replace(fileOf(space), PinFile.encode({ ver: 1, pins: [...pins] }), "public");
  return pins;
}
