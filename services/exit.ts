/** The exit code of a process whose services ended (lifecycles §8.4). */
import { EXIT } from "../shared/exit.ts";
import type { EndReason } from "./service.ts";

export function exitOfEnd(reason: EndReason): number {
  if (reason === "closed") return EXIT.closed;
  return reason === "superseded" ? EXIT.superseded : EXIT.failed;
}
