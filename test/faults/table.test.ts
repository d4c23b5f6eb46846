/** Every fault that the page names has its tests, and every test of a fault is on the page. */
import { access, readdir } from "node:fs/promises";
import { expect, it } from "vitest";
import { pageOf, ROOT } from "../docs/code-blocks.ts";

const [, table = ""] = (await pageOf("docs/faults.md")).split("|---|---|---|---|\n");
const rows = (table.split("\n\n")[0] ?? "").split("\n").map((line) => line.split(" | "));
const filesOf = (cell = ""): string[] =>
  [...cell.matchAll(/`(test\/[\w./-]+\.test\.ts)`/g)].map(([, file = ""]) => file);

it.each(rows.map(([fault = "", , , shownBy]) => [fault.replace("| ", ""), filesOf(shownBy)] as const))(
  "%s",
  async (_fault, files) => {
    expect(files).not.toEqual([]);
    await Promise.all(files.map((file) => access(ROOT + file)));
  },
);

it("names every test of a fault", async () => {
  const here = (await readdir(`${ROOT}test/faults`)).filter(
    (file) => file.endsWith(".test.ts") && file !== "table.test.ts",
  );
  expect(
    rows
      .flatMap((cells) => filesOf(cells[3]))
      .filter((file) => file.startsWith("test/faults/"))
      .sort(),
  ).toEqual(here.map((file) => `test/faults/${file}`).sort());
});
