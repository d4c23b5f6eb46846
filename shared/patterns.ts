/** Subject patterns as the broker reads them: `*` stands for exactly one token, a final `>` for one or more. */

/** Whether a literal subject lies within the pattern. */
export const matches = (pattern: string, subject: string): boolean => contains(pattern, subject);

/**
 * Whether every subject of `child` is one of `parent`, token by token (identity §6).
 * A literal subject is a pattern that stands for itself alone.
 */
export function contains(parent: string, child: string): boolean {
  const outer = parent.split(".");
  const inner = child.split(".");
  for (const [at, token] of outer.entries()) {
    const covered = inner[at];
    if (covered === undefined) return false;
    if (token === ">") return at === outer.length - 1;
    // What `>` stands for may be longer than any single token of the parent.
    if (covered === ">" || (token !== "*" && token !== covered)) return false;
  }
  return inner.length === outer.length;
}

/** Whether some subject lies within both patterns. */
export function overlaps(one: string, other: string): boolean {
  const left = one.split(".");
  const right = other.split(".");
  for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
    const [a, b] = [left[at], right[at]];
    if (a === undefined || b === undefined) return false;
    if (a === ">" || b === ">") return true;
    if (a !== b && a !== "*" && b !== "*") return false;
  }
  return true;
}

const PATTERN = /^(?:(?:[^\s.*>]+|\*)(?:\.(?:[^\s.*>]+|\*))*(?:\.>)?|>)$/;

/** Tokens without blanks; `*` and `>` only as whole tokens, `>` only as the last. */
export const isPattern = (text: string): boolean => PATTERN.test(text);
