/** What a benchmark compares: a ratio to a named baseline of the same run, and the target that it is held to. */

/** Begins the line of a comparison; `run.ts` gathers them. */
export const VERDICTS = ["PASS", "miss"] as const;

export interface Comparison {
  readonly what: string;
  readonly ratio: number;
  /** What it is a ratio to. */
  readonly baseline: string;
  readonly target: { readonly atLeast: number } | { readonly atMost: number };
}

export function verdict({ what, ratio, baseline, target }: Comparison): void {
  const [bound, passed] =
    "atLeast" in target
      ? [`at least ${target.atLeast}`, ratio >= target.atLeast]
      : [`at most ${target.atMost}`, ratio <= target.atMost];
  const [pass, miss] = VERDICTS;
  console.log(`${passed ? pass : miss} ${what}: ${ratio.toFixed(2)} × ${baseline} (${bound})`);
}
