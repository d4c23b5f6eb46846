import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { REFERENCE_FILE, reference } from "../../../services/docs/reference.ts";
import { everyOperation } from "../../shared/contracts/every-operation.ts";

const page = reference();
const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, text]) => text ?? "");

describe("the reference of operations", () => {
  it("is the committed page; `npm run docs` writes it", () => {
    expect(readFileSync(REFERENCE_FILE, "utf8")).toBe(page);
  });

  it("tells each operation once, with its subject and its example", () => {
    for (const { service, name, example } of everyOperation) {
      expect(headings.filter((heading) => heading === name)).toHaveLength(1);
      const shown = name === "describe" ? "<service>" : service;
      expect(page).toContain(`\`cotal.<space>.ep.one.${shown}.${name}.`);
      if (example !== null) expect(page).toContain(JSON.stringify(example, null, 2));
    }
  });

  it("links to nothing that is not there", () => {
    const anchors = new Set(headings.map((heading) => heading.toLowerCase().replaceAll(" ", "-")));
    for (const [, anchor = ""] of page.matchAll(/\]\(#([^)]*)\)/g)) expect(anchors).toContain(anchor);
  });

  it("keeps each row of a table to its columns", () => {
    for (const block of page.split("\n\n").filter((text) => text.startsWith("|"))) {
      const columns = block
        .trimEnd()
        .split("\n")
        .map((line) => line.replaceAll("\\|", "").split("|").length);
      expect(new Set(columns).size, block.slice(0, 200)).toBe(1);
    }
  });
});
