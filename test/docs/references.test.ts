/** "wire §4" in a comment is a heading that a reader finds; "pitfalls 13" a fact of the broker page. */
import { readdir, readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { pageOf, ROOT } from "./code-blocks.ts";

const CHAPTERS = ["architecture", "wire", "state", "records", "identity", "operations", "lifecycles"] as const;
const FOLDERS = ["shared", "services", "gateway", "test"];
const REFERENCE = new RegExp(`\\b(${CHAPTERS.join("|")})(?: specification)? §(\\d+(?:\\.\\d+)?)`, "g");

async function sources(): Promise<{ file: string; text: string }[]> {
  const lists = await Promise.all(
    FOLDERS.map(async (folder) =>
      (await readdir(`${ROOT}${folder}`, { recursive: true }))
        .filter((name) => /\.(ts|mjs)$/.test(name))
        .map((name) => `${folder}/${name}`),
    ),
  );
  return Promise.all(lists.flat().map(async (file) => ({ file, text: await readFile(`${ROOT}${file}`, "utf8") })));
}

/** Numbers of headings; of a chapter's numbered list also `<section>.<item>`. */
async function sectionsOf(chapter: string): Promise<Set<string>> {
  const found = new Set<string>();
  let section = "";
  for (const line of (await pageOf(`docs/${chapter}.md`)).split("\n")) {
    const heading = /^#{2,3} (\d+(?:\.\d+)?)\.? /.exec(line)?.[1];
    if (heading !== undefined) section = heading;
    const item = /^(\d+)\. /.exec(line)?.[1];
    found.add(item === undefined ? section : `${section}.${item}`);
  }
  return found;
}

it("finds every section that a comment names", async () => {
  const sections = new Map(
    await Promise.all(CHAPTERS.map(async (chapter) => [chapter as string, await sectionsOf(chapter)] as const)),
  );
  const lost: string[] = [];
  for (const { file, text } of await sources()) {
    for (const [reference, chapter = "", section = ""] of text.matchAll(REFERENCE)) {
      if (!sections.get(chapter)?.has(section)) lost.push(`${file}: ${reference}`);
    }
  }
  expect(lost).toEqual([]);
});

it("finds every fact about the broker that a comment names", async () => {
  const facts = new Set([...(await pageOf("docs/broker.md")).matchAll(/^(\d+)\. /gm)].map(([, number]) => number));
  const lost: string[] = [];
  for (const { file, text } of await sources()) {
    for (const [reference, number] of text.matchAll(/\bpitfalls (\d+)/g)) {
      if (!facts.has(number)) lost.push(`${file}: ${reference}`);
    }
  }
  expect(lost).toEqual([]);
});
