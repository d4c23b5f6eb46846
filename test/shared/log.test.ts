import { expect, it } from "vitest";
import { createLog } from "../../shared/log.ts";

it("a log line never has a secret, wherever somebody put it", () => {
  const lines: string[] = [];
  const log = createLog("info", { write: (line) => void lines.push(line) });
  log.info(
    { jwt: "s3cret", creds: { seed: "s3cret" }, request: { args: { actorToken: "s3cret" } }, op: "run-admit" },
    "request",
  );
  expect(lines.join("")).not.toContain("s3cret");
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ jwt: "[redacted]", op: "run-admit", msg: "request" });
});
