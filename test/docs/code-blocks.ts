/** The fenced code blocks of a page, so that what a page shows is what a test runs. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface CodeBlock {
  /** What stands after the fence: `sh`, `ts`, … */
  readonly language: string;
  readonly text: string;
  /** The file that an HTML comment right above names: `<!-- runnable: connect.ts -->`. */
  readonly file?: string;
}

export const pageOf = (path: string): Promise<string> => readFile(`${ROOT}${path}`, "utf8");

export function codeBlocks(page: string): CodeBlock[] {
  const fences =
    /^(?:<!-- runnable: (?<file>\S+) -->\n)?(?<indent> *)```(?<language>\w*)\n(?<body>[\s\S]*?)^\k<indent>```$/gm;
  return [...page.matchAll(fences)].map(({ groups = {} }) => {
    const { language = "", body = "", indent = "", file } = groups;
    const text = body.replaceAll(new RegExp(`^${indent}`, "gm"), "");
    return { language, text, ...(file === undefined ? {} : { file }) };
  });
}

/** The one block of a page that bears that file name. */
export async function runnable(path: string, file: string): Promise<string> {
  const found = codeBlocks(await pageOf(path)).filter((block) => block.file === file);
  const [only] = found;
  if (!only || found.length > 1) throw new Error(`${path} has ${found.length} blocks for ${file}`);
  return only.text;
}
