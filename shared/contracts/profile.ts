/**
 * Contract artifacts from outside: a manager's, sent to be activated or read back from their stream (wire §6,
 * records §6). They are held to the profile and the limits, and never compiled or run.
 */
import Type from "typebox";
import { Compile } from "typebox/compile";
import type { Json } from "../canonical.ts";
import { CONTRACT } from "../limits.ts";
import { Digest } from "../tokens.ts";
import { ClusterDocument as ClusterSchema } from "./describe.ts";
import { type Artifact, artifactOf, Closed, type ClusterDocument, type CommandEntry, manifestOf } from "./operation.ts";
import { checkSchema, contractInvalid } from "./schema-rules.ts";

const MANAGER_URN = "ai.cotal.manager";
/** Names that no declaration may take (wire §1). */
const RESERVED: ReadonlySet<string> = new Set(["describe", "cancel", "lease", "commit"]);

const Manifest = Closed({
  v: Type.Literal(1),
  root: Digest.schema,
  members: Type.Array(Digest.schema, { maxItems: 2 * CONTRACT.maxCommands, uniqueItems: true }),
});

const isCluster = Compile(ClusterSchema);
const isManifest = Compile(Manifest);

export interface RegisteredCommand extends Omit<CommandEntry, "input" | "output"> {
  /** Closure digests of its two schemas. */
  readonly inputDigest: Digest;
  readonly outputDigest: Digest;
}

/** What a manager serves, as its artifacts declare it. */
export interface RegisteredContract {
  readonly cluster: ClusterDocument;
  /** Closure digest of the cluster document: what `clusterDigests` of the registered spec must contain. */
  readonly clusterDigest: Digest;
  readonly commands: readonly RegisteredCommand[];
  /** All that stands in the stream for it: documents that the cluster reaches, and every manifest. */
  readonly artifacts: readonly Artifact[];
}

/**
 * Reads artifacts in any order: exactly one cluster document of a manager, whose references are among the rest.
 * What it does not reach is held to the same rules and otherwise ignored. Throws `contract-invalid`.
 */
export function readManagerArtifacts(artifacts: readonly unknown[]): RegisteredContract {
  const schemas = new Map<Digest, Artifact>();
  const clusters: unknown[] = [];
  for (const document of artifacts) {
    const artifact = withinLimits(document);
    const urn = urnOf(document);
    if (urn === MANAGER_URN) clusters.push(document);
    if (urn !== undefined) continue;
    checkSchema(document);
    schemas.set(artifact.digest, artifact);
  }
  const [cluster, ...others] = clusters;
  if (cluster === undefined || others.length > 0) throw contractInvalid("not exactly one cluster document", "");
  if (!isCluster.Check(cluster)) throw contractInvalid("a malformed cluster document", "");
  return contractOf(cluster, schemas);
}

/**
 * Reads a registered contract back by its closure digest. `load` gives the document under an artifact digest, which
 * is verified here. Throws `contract-invalid`, and whatever `load` throws.
 */
export async function readClosure(
  clusterDigest: Digest,
  load: (digest: Digest) => Promise<Json>,
): Promise<RegisteredContract> {
  let bytes = 0;
  const verified = async (digest: Digest): Promise<Json> => {
    const document = await load(digest);
    const artifact = withinLimits(document);
    if (artifact.digest !== digest) throw contractInvalid("an artifact is not what its digest says", "");
    bytes += Buffer.byteLength(artifact.text);
    if (bytes > CONTRACT.maxClosureBytes) throw closureTooLarge();
    return document;
  };
  const manifest = await verified(clusterDigest);
  if (!isManifest.Check(manifest)) throw contractInvalid("a malformed manifest", "");
  const documents: Json[] = [];
  for (const digest of [manifest.root, ...manifest.members]) documents.push(await verified(digest));
  const contract = readManagerArtifacts(documents);
  // The root must be the cluster document, the members exactly what it reaches, in order.
  if (contract.clusterDigest !== clusterDigest) throw contractInvalid("a manifest lists another closure", "");
  return contract;
}

function contractOf(cluster: ClusterDocument, schemas: ReadonlyMap<Digest, Artifact>): RegisteredContract {
  const artifacts = new Map<Digest, Artifact>();
  const add = (artifact: Artifact): Digest => {
    artifacts.set(artifact.digest, artifact);
    return artifact.digest;
  };
  const names = new Set<string>();
  const commands = cluster.commands.map(({ input, output, ...command }) => {
    if (names.has(command.name)) throw contractInvalid("two declarations of one name", "");
    if (RESERVED.has(command.name)) throw contractInvalid("a reserved name", "");
    names.add(command.name);
    for (const { $ref } of [input, output]) {
      const schema = schemas.get($ref);
      if (!schema) throw contractInvalid("a reference without its artifact", "");
      add(schema);
    }
    return {
      ...command,
      inputDigest: closure(input.$ref),
      outputDigest: closure(output.$ref),
    };
  });
  const members = [...artifacts.keys()];
  const root = add(artifactOf(cluster));
  const clusterDigest = add(artifactOf(manifestOf(root, members)));
  const bytes = [...artifacts.values()].reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  if (bytes > CONTRACT.maxClosureBytes) throw closureTooLarge();
  for (const member of members) add(artifactOf(manifestOf(member, [])));
  return { cluster, clusterDigest, commands, artifacts: [...artifacts.values()] };
}

const closure = (digest: Digest): Digest => artifactOf(manifestOf(digest, [])).digest;

const closureTooLarge = () => contractInvalid(`a closure has at most ${CONTRACT.maxClosureBytes} bytes`, "");

/** The `urn` by which a document says that it is none of a schema's. */
function urnOf(document: unknown): unknown {
  return typeof document === "object" && document !== null && Object.hasOwn(document, "urn")
    ? new Map<string, unknown>(Object.entries(document)).get("urn")
    : undefined;
}

/** The document's artifact; its depth is looked at first, because everything after this recurses. */
function withinLimits(document: unknown): Artifact {
  let level: unknown[] = [document];
  for (let depth = 0; level.length > 0; depth += 1) {
    const containers = level.filter((value): value is object => typeof value === "object" && value !== null);
    if (depth >= CONTRACT.maxDepth && containers.length > 0) {
      throw contractInvalid(`a document nests deeper than ${CONTRACT.maxDepth}`, "");
    }
    level = containers.flatMap((container) => Object.values(container));
  }
  const artifact = artifactOf(document);
  if (Buffer.byteLength(artifact.text) > CONTRACT.maxDocumentBytes) {
    throw contractInvalid(`a document has at most ${CONTRACT.maxDocumentBytes} bytes`, "");
  }
  return artifact;
}
