/** What an operator watches of barriers: those that do not end by themselves, and rows that nobody here may touch. */
import { Counter, Gauge } from "prom-client";
import { registry } from "../../metrics.ts";

export const unfinished = new Counter({
  name: "auth_barriers_unfinished",
  help: "Barriers that stopped before their end, by kind and step; they are tried again",
  labelNames: ["kind", "step"],
  registers: [registry],
});

export const leftAlone = new Counter({
  name: "auth_barriers_left_alone",
  help: "Gates and stages that no rule here moves, by reason",
  labelNames: ["reason"],
  registers: [registry],
});

export const unsettled = new Counter({
  name: "auth_obligations_unsettled",
  help: "Obligations that a draining could not settle, by why",
  labelNames: ["why"],
  registers: [registry],
});

export const planeHeld = new Gauge({
  name: "auth_plane_held",
  help: "1 while this replica runs retirements",
  registers: [registry],
});
