/** Reads the links of an attenuation walk, each fresh from the leader (identity §6). */
import type { ReadLink } from "../../../shared/attenuation.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import type { Visit } from "../visit.ts";

export const parentOf =
  ({ context, work }: Pick<Visit, "context" | "work">): ReadLink =>
  async (owner, actor) =>
    (await context.store.read(actorRows.key({ owner, actor }), work))?.value;
