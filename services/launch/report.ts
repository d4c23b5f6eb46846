/** What the launcher says: text for people, or one JSON object a line. */
import type { Happening } from "./supervisor.ts";

/** One step of the tour. */
export interface TourStep {
  readonly step: string;
  readonly ok: boolean;
  /** The subject or route that was used. */
  readonly on?: string;
  /** What happened. */
  readonly result: string;
}

export interface Report {
  /** A line for people; in JSON `{"event":"note"}`. */
  note(text: string): void;
  process(happening: Happening): void;
  step(step: TourStep): void;
  tour(summary: { readonly steps: number; readonly failed: number }): void;
  /** What to try next: commands, each with what it shows. */
  next(hints: readonly { readonly command: string; readonly shows: string }[]): void;
  /** On stderr. */
  problem(text: string): void;
}

type Write = (line: string) => void;

export function report(json: boolean, out: Write, err: Write): Report {
  return json ? jsonReport(out, err) : textReport(out, err);
}

function jsonReport(out: Write, err: Write): Report {
  const put = (event: string, fields: object): void => out(JSON.stringify({ event, ...fields }));
  return {
    note: (text) => put("note", { text }),
    process: ({ event, ...fields }) => put("process", { state: event, ...fields }),
    step: (step) => put("step", step),
    tour: (summary) => put("tour", summary),
    next: (hints) => put("next", { commands: hints }),
    problem: (text) => err(text),
  };
}

function textReport(out: Write, err: Write): Report {
  return {
    note: out,
    process({ process, event, pid, exit }) {
      if (event === "ready") out(`  ${process} is ready (pid ${pid})`);
      else if (event === "exited") err(`  ${process} ended: ${exit}`);
      else if (event === "restarting") err(`  ${process} starts again`);
      else if (event === "killed") err(`  ${process} did not stop in time and was killed`);
    },
    step: ({ step, ok, on, result }) => out(`  ${ok ? "ok  " : "FAIL"} ${step}: ${result}${on ? `  [${on}]` : ""}`),
    tour: ({ steps, failed }) => out(`tour: ${steps} steps, ${failed} failed`),
    next(hints) {
      out("Try next:");
      for (const { command, shows } of hints) out(`  # ${shows}\n  ${command}`);
      out("Ctrl-C stops everything.");
    },
    problem: (text) => err(text),
  };
}
