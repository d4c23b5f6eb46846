/** The command line in this process: what it prints, and its exit code. */
import { run } from "../../../services/cli/main.ts";
import type { Ground } from "../../kit/ground.ts";

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function mesh(...argv: string[]): Promise<Ran> {
  const [out, err] = [capture(process.stdout), capture(process.stderr)];
  try {
    return { code: await run(argv), out: out.text(), err: err.text() };
  } finally {
    out.release();
    err.release();
  }
}

function capture(stream: NodeJS.WriteStream): { text(): string; release(): void } {
  const { write } = stream;
  let text = "";
  stream.write = ((chunk: string) => {
    text += chunk;
    return true;
  }) as typeof write;
  return {
    text: () => text,
    release: () => {
      stream.write = write;
    },
  };
}

/** With `--json`, in the state and at the broker of a test's ground; what it answers, parsed. */
export async function meshJson(ground: Ground, ...argv: string[]): Promise<{ code: number; answer: unknown }> {
  const place = ["--state", ground.stateDir, "--servers", ground.servers.join(","), "--json"];
  const { code, out, err } = await mesh(...argv, ...place);
  const text = out || err.trim().split("\n").at(-1) || "null";
  return { code, answer: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text };
}
