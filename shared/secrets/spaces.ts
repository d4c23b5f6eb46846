/** Which spaces a state folder holds. */
import { AuthorityError } from "../errors.ts";
import { Space } from "../tokens.ts";
import { refused } from "./document.ts";
import type { Folder } from "./folder.ts";
import { spaceFolder } from "./store.ts";

const PREFIX = "space.";

/** Those that have settings: `init` writes them last. */
export async function spacesIn(folder: Folder): Promise<Space[]> {
  const spaces: Space[] = [];
  for (const name of await folder.names()) {
    if (!name.startsWith(PREFIX)) continue;
    const space = Buffer.from(name.slice(PREFIX.length), "hex").toString();
    if (!Space.is(space) || spaceFolder(space) !== name)
      throw refused(`${folder.path}/${name}`, "is no space's folder");
    if ((await folder.read(`${name}/space.json`, "public")) !== undefined) spaces.push(space);
  }
  return spaces;
}

/** The space that was named, or the only one there is. */
export async function chooseSpace(folder: Folder, named: string | undefined): Promise<Space> {
  const spaces = await spacesIn(folder);
  if (spaces.length === 0) {
    throw new AuthorityError("failed-precondition", `no space in ${folder.path} yet: make one with init`);
  }
  if (named === undefined) {
    const [only, ...more] = spaces;
    if (only !== undefined && more.length === 0) return only;
    throw new AuthorityError("bad-request", `several spaces here, name one with --space: ${spaces.join(", ")}`);
  }
  const chosen = spaces.find((space) => space === named);
  if (chosen === undefined) {
    throw new AuthorityError("bad-request", `no space of that name in ${folder.path}; there are: ${spaces.join(", ")}`);
  }
  return chosen;
}
