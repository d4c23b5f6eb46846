/** Whether every file of the state is there, ours, and closed to others (identity §1.1). */
import { isAuthorityError, textOf } from "../../../shared/errors.ts";
import type { Exposure, Folder } from "../../../shared/secrets/folder.ts";
import { PUBLIC_FILE, VIEWS } from "../../../shared/secrets/keys.ts";
import { secretKey, spaceFolder } from "../../../shared/secrets/store.ts";
import type { Space } from "../../../shared/tokens.ts";
import { bad, type Finding, good } from "./finding.ts";

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
      if (!there && !optional)
        findings.push(bad("file", `${path} is not there`, "run init again, or restore it from a backup"));
    } catch (error) {
      const reason = (isAuthorityError(error) ? error.reason : undefined) ?? textOf(error);
      const mode = exposure === "secret" ? "600" : "644";
      findings.push(bad("file", reason, `make it a regular file of this user: chmod ${mode} ${folder.path}/${path}`));
    }
  }
  return findings.length > 0 ? findings : [good("files", `${expected.length} files, owner and modes right`)];
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
