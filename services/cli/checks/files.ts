/** Whether every file of the state is there, ours, and closed to others (identity §1.1). */
import { basename } from "node:path";
import { reasonOf } from "../../../shared/errors.ts";
import type { Exposure, Folder } from "../../../shared/secrets/folder.ts";
import { PUBLIC_FILE, VIEWS } from "../../../shared/secrets/keys.ts";
import { secretKey, spaceFolder } from "../../../shared/secrets/store.ts";
import type { Space } from "../../../shared/tokens.ts";
import { bad, type Finding, good, RELOAD } from "./finding.ts";

/** Made by the first exchange, not by `init`. */
const MADE_LATER = new Set(["issuer.json", "owner-secret.json"]);

interface Expected {
  readonly path: string;
  readonly exposure: Exposure;
  readonly optional: boolean;
}

export async function fileFindings(folder: Folder, space: Space): Promise<Finding[]> {
  const findings: Finding[] = [];
  const expected = expectedFiles(space);
  for (const { path, exposure, optional } of expected) {
    try {
      const there = (await folder.read(path, exposure)) !== undefined;
      if (!there && !optional) findings.push(bad("file", `${path} is not there`, remedyOfMissing(path)));
    } catch (error) {
      const reason = reasonOf(error);
      findings.push(bad("file", reason, remedyOfUnusable(reason, `${folder.path}/${path}`)));
    }
  }
  return findings.length > 0 ? findings : [good("files", `${expected.length} files, owner and modes right`)];
}

/** What can be made anew is; the rest are keys that nobody has but their backup. */
export function remedyOfMissing(path: string): string {
  const file = basename(path);
  const user = /^(.+)\.creds$/.exec(file)?.[1];
  switch (file) {
    case "idp.json":
      return "run idp add: until then nobody can log in";
    case "broker.conf":
      return "run init again with the --space of this one";
    case "sentinel.creds":
      return "run init again with the --space of this one, then restart exchange and auth";
    default:
      return user === undefined
        ? "restore it from a backup: nothing can make it again"
        : `run rotate creds ${user}, then ${RELOAD} and restart what uses it`;
  }
}

/** For a place that is more open than it may be. */
export function chmodFor(reason: string): string | undefined {
  const [, where, most] = /^(.+): has mode \d+, at most 0(\d+)$/.exec(reason) ?? [];
  return where === undefined ? undefined : `chmod ${most === "700" ? "go-rwx" : "go-w"} ${where}`;
}

function remedyOfUnusable(reason: string, path: string): string {
  const chmod = chmodFor(reason);
  if (chmod !== undefined) return chmod;
  if (reason.endsWith("belongs to another user")) return "chown it to the user of the services";
  return `put a regular file of this user at ${path}`;
}

function expectedFiles(space: Space): Expected[] {
  const secrets = new Set<string>(Object.values(VIEWS).flat());
  return [
    { path: "store.id", exposure: "secret", optional: false },
    // May be kept somewhere else.
    { path: "broker/root.json", exposure: "secret", optional: true },
    { path: "broker/broker.conf", exposure: "public", optional: false },
    ...["space.json", "idp.json", "sentinel.creds"].map((file) => ({
      path: `${spaceFolder(space)}/${file}`,
      exposure: "public" as const,
      optional: false,
    })),
    ...[...secrets].map((file) => ({
      path: secretKey(space, file),
      exposure: file === PUBLIC_FILE ? ("public" as const) : ("secret" as const),
      optional: MADE_LATER.has(file),
    })),
  ];
}
