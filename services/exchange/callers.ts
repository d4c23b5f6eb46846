/** Who may ask the exchange, and through which face (identity §8). */
import type { Operation } from "../../shared/contracts/operation.ts";
import { AuthorityError } from "../../shared/errors.ts";
import type { Triple } from "../../shared/tokens.ts";
import { type Face, type View, viewRule } from "../../shared/views.ts";
import type { Request } from "../host/handler.ts";
import { isGateway } from "../host/places.ts";

/** Gateways, and for `identify` the authority alone: it passes on the token of its own request. */
export async function admitCaller({ caller }: Pick<Request, "caller">, operation: Operation): Promise<void> {
  const admitted = operation.callers.some(
    (kind) =>
      kind === "anyone" ||
      (kind === "gateway" && isGateway(caller)) ||
      (kind === "authority" && caller.owner === "local" && caller.actor === "auth"),
  );
  if (!admitted) throw new AuthorityError("permission-denied", "this caller is not admitted here");
}

/** The face is the gateway's principal, never a field. */
export const faceOf = (caller: Triple): Face => (caller.actor === "gateway_loopback" ? "loopback" : "public");

/** Whether the view may be asked for at all, and on this face. */
export function assertView(view: View | undefined, face: Face): void {
  if (view === "manager-service") throw new AuthorityError("unimplemented", "typed operations replace this view");
  if (!viewRule(view).faces.includes(face)) {
    throw new AuthorityError("permission-denied", "this view is not given on this face");
  }
}
