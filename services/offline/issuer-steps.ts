/**
 * The steps of a rotation of the bearer keys, pure over `issuer.json` (identity §5). Each raises `rev`, which makes every
 * exchange publish the file anew; one that is too early refuses. `now` is Unix milliseconds.
 */
import { AuthorityError } from "../../shared/errors.ts";
import { ISSUER } from "../../shared/limits.ts";
import type { IssuerFile, IssuerKey } from "../../shared/secrets/issuer.ts";

/** Publishes a fresh key, which does not sign yet. */
export function publishNext(file: IssuerFile, fresh: IssuerKey): IssuerFile {
  if (file.keys.length >= ISSUER.maxKeys) throw early(`there are ${ISSUER.maxKeys} keys already, retire one first`);
  return { ...file, rev: file.rev + 1, keys: [...file.keys, fresh] };
}

/** The key published first of those that never signed signs from now on; the former stays published. */
export function activateNext(file: IssuerFile, now: number): IssuerFile {
  const [next] = pending(file);
  if (next === undefined) throw early("no key waits to be activated, publish one first");
  wait(next.publishedAt + ISSUER.activateAfterMs, now, "the key is not known everywhere yet");
  return signingWith(file, next, now);
}

/** Removes a key that every verifier has seen stop and no living bearer names. */
export function retire(file: IssuerFile, kid: string, now: number): IssuerFile {
  const { stoppedAt } = keyOf(file, kid);
  if (kid === file.activeKid) throw early("this key signs, activate another first");
  if (stoppedAt === undefined) throw early("this key has not signed yet");
  wait(stoppedAt + ISSUER.retireAfterMs, now, "bearers of this key may still be valid");
  return without(file, kid);
}

/** Removes a key at once, its bearers with it. If it signs, the next key takes over unannounced, or else a fresh one. */
export function removeCompromised(file: IssuerFile, kid: string, fresh: () => IssuerKey, now: number): IssuerFile {
  keyOf(file, kid);
  const rest = without(file, kid);
  if (kid !== file.activeKid) return rest;
  const [next] = pending(rest);
  if (next !== undefined) return { ...signingWith(rest, next, now), rev: rest.rev };
  const key = fresh();
  return { ...signingWith({ ...rest, keys: [...rest.keys, key] }, key, now), rev: rest.rev };
}

/** Published and never signing, oldest first. */
function pending({ keys }: IssuerFile): IssuerKey[] {
  return keys.filter(({ activeAt }) => activeAt === undefined).sort((a, b) => a.publishedAt - b.publishedAt);
}

function signingWith(file: IssuerFile, next: IssuerKey, now: number): IssuerFile {
  const keys = file.keys.map((key) => {
    if (key.kid === next.kid) return { ...key, activeAt: now };
    return key.kid === file.activeKid ? { ...key, stoppedAt: now } : key;
  });
  return { ...file, rev: file.rev + 1, activeKid: next.kid, keys };
}

function without(file: IssuerFile, kid: string): IssuerFile {
  return { ...file, rev: file.rev + 1, keys: file.keys.filter((key) => key.kid !== kid) };
}

function keyOf(file: IssuerFile, kid: string): IssuerKey {
  const key = file.keys.find((one) => one.kid === kid);
  if (key === undefined)
    throw new AuthorityError("not-found", `no such key; there are ${file.keys.map((one) => one.kid).join(", ")}`);
  return key;
}

function wait(until: number, now: number, why: string): void {
  if (now < until) throw early(`${why}, wait ${Math.ceil((until - now) / 1_000)} s`);
}

const early = (message: string): AuthorityError => new AuthorityError("failed-precondition", message);
