/** What every probe of one of our services shares. */
import type { Probe } from "../../kit/probe.ts";

export const P = "cotal.{s}";
export const T = "{o}.{a}.{u}";
/** A request that must pass, but for no other operation or service. */
export const ask = (service: string, name: string): string => `${P}.ep.[one].[${service}].[${name}].${T}.n`;
/** A request to be refused. */
export const never = (service: string, name: string): string => `${P}.ep.one.${service}.${name}.${T}.n`;

/** Hears one command in its queue, and is found by the micro tools. */
export const serving = (service: string, command: string): Pick<Probe, "subscribe" | "notSubscribe"> => ({
  subscribe: [
    `${P}.ep.[one].[${service}].[${command}].> ${service}`,
    `${P}.ep.[one].[${service}].[describe].> ${service}`,
    "$SRV.[PING]",
    `$SRV.PING.[${service}]`,
    `$SRV.STATS.[${service}].id`,
  ],
  notSubscribe: [
    `${P}.ep.one.${service}.> ${service}`,
    `${P}.ep.all.${service}.${command}.>`,
    `${P}.ep.v1.one.${service}.${command}.> ${service}`,
    `${P}.ep.one.*.${command}.> ${service}`,
    `${P}.ep.one.manager.spawn.> manager`,
    `${P}.ep.reply.>`,
    "$SRV.>",
    "_INBOX.>",
  ],
});
