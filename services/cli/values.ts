/** Parsers of arguments and options: what is malformed is a wrong command, not a refused one. */
import { InvalidArgumentError } from "commander";
import { newNonce, systemPorts } from "../../shared/ports.ts";
import type { RequestId, Token } from "../../shared/tokens.ts";

/** A value of a grammar. */
export const a =
  <T extends string>(token: Token<T>) =>
  (text: string): T => {
    if (token.is(text)) return text;
    throw new InvalidArgumentError(`it is no ${token.name} (${FORMS[token.name] ?? token.pattern.source}).`);
  };

/** What is often typed wrong, in words. */
const FORMS: Readonly<Record<string, string>> = {
  space: "letters, digits, _ and -, 64 at most",
  owner: "u_ or p_ and 26 of a-z and 2-7, as the exchange and `actor list` show it",
  "person owner": "u_ and 26 of a-z and 2-7, as the exchange shows it to a person whom it refuses",
  "platform owner": "p_ and 26 of a-z and 2-7",
  actor: "letters, digits and _, 64 at most",
  uid: "26 to 32 of a-z and 0-9, as `actor list` and `nats micro info` show it",
  scope: "choose from spawn, run, supervise, admin, role:NAME",
};

/** Values with commas between them; an empty text is an empty list. */
export const listOf =
  <T extends string>(token: Token<T>) =>
  (text: string): T[] =>
    text.trim() === "" ? [] : text.split(",").map((item) => a(token)(item.trim()));

/** One of a few words. */
export const oneOf =
  <const T extends string>(words: readonly T[]) =>
  (text: string): T => {
    const word = words.find((one) => one === text);
    if (word === undefined) throw new InvalidArgumentError(`choose from ${words.join(", ")}.`);
    return word;
  };

export function port(text: string): number {
  const value = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > 65_535) throw new InvalidArgumentError("a port is 1 to 65535.");
  return value;
}

/** Addresses of brokers with commas between them, or one; a scheme may be left out. */
export function servers(text: string): string {
  for (const server of text.split(",")) {
    if (!/^((nats|tls|ws|wss):\/\/)?[^\s/,]+$/.test(server.trim())) {
      throw new InvalidArgumentError("addresses such as nats://mesh.example:4222, with commas between.");
    }
  }
  return text;
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("a whole number is needed.");
  return Number(text);
}

/** Unix ms of a date in ISO 8601, or of a time from now such as `12h` or `30d`. */
export const when =
  (now: () => number) =>
  (text: string): number => {
    const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
    if (count !== undefined) return now() + Number(count) * UNITS[unit as keyof typeof UNITS];
    const at = Date.parse(text);
    if (Number.isNaN(at)) throw new InvalidArgumentError("a date such as 2026-01-31T12:00Z, or 30m, 12h, 7d.");
    return at;
  };

const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A fresh id under which a request may be repeated. */
export const requestId = (): RequestId => newNonce(systemPorts) as string as RequestId;
