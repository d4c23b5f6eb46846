/** What a `pattern` may be (wire §6): at most 256 characters, neither lookaround nor backreference. Never compiled. */
import { CONTRACT } from "../limits.ts";

/**
 * An escape with what it escapes, or a group's opening with a look at what follows. Character classes are passed over
 * as if they were none: where one begins and ends differs between dialects, and `(?=` inside one is nobody's loss.
 */
const TOKENS = /\\([\s\S]?)|\(\?(?=([\s\S]{0,2}))/g;

/** The rule that a pattern breaks. */
export function patternFault(pattern: unknown): string | undefined {
  if (typeof pattern !== "string") return "a pattern is a string";
  if (pattern.length > CONTRACT.maxPattern) return `a pattern has at most ${CONTRACT.maxPattern} characters`;
  for (const [, escaped, group] of pattern.matchAll(TOKENS)) {
    if (escaped === "") return "a pattern ends inside an escape";
    if (escaped !== undefined && /[1-9k]/.test(escaped)) return "a pattern has no backreference";
    if (group !== undefined && !/^(:|<[A-Za-z_$])/.test(group)) return "a pattern has no lookaround";
  }
  return undefined;
}
