/** How a command talks: data on stdout, the rest on stderr; text for people or JSON. */
export interface Console {
  readonly json: boolean;
  /** The result. `text` is what people see of it. */
  result(value: unknown, text: string): void;
  /** What is being done meanwhile; never part of the result. */
  note(text: string): void;
  failure(value: unknown, text: string): void;
}

export function openConsole(json: boolean): Console {
  const out = (line: string): void => void process.stdout.write(`${line}\n`);
  const err = (line: string): void => void process.stderr.write(`${line}\n`);
  return {
    json,
    result: (value, text) => out(json ? JSON.stringify(value) : text),
    note: err,
    failure: (value, text) => err(json ? JSON.stringify(value) : text),
  };
}

/** Columns as wide as their widest cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
