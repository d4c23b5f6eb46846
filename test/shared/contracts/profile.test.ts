import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { digestOf, digestOfBytes, type Json } from "../../../shared/canonical.ts";
import { authContracts } from "../../../shared/contracts/auth.ts";
import { EXAMPLE_ARTIFACTS } from "../../../shared/contracts/example.ts";
import { artifactOf, schemaClosure } from "../../../shared/contracts/operation.ts";
import { readClosure, readManagerArtifacts } from "../../../shared/contracts/profile.ts";
import { AuthorityError, isAuthorityError } from "../../../shared/errors.ts";
import { CONTRACT } from "../../../shared/limits.ts";
import type { Digest } from "../../../shared/tokens.ts";

const [C, I, V] = EXAMPLE_ARTIFACTS;
const DIGEST = {
  artifactI: "sha256:9f063238037f4d384177a922281f309b165b757e3a58cf8c2d7def6208bb5ead",
  closureI: "sha256:b31a7ea8cf310c5eeae07c71feb831e4825434120ff76f6b366c9d850115e303",
  artifactV: "sha256:bcde375ebd4cbacf651311181173836b169d5a360c6ac158c6a2cdaf49be3f61",
  closureV: "sha256:1db0472aaee8e6b9d8d3d430ee021a1b6efc559ab7c0b99186898c972c53dd2d",
  artifactC: "sha256:b455d307ea55bdc296d354511654eee531cd729ed7e6d89228d65f4bd8f86c27",
  cluster: "sha256:6a79e4d31b07513db19d0798381e6c94223646289875854dea3fbdfbcfdd9b7c",
};

const codeOf = (run: () => unknown): string => {
  try {
    run();
    return "accepted";
  } catch (error) {
    return isAuthorityError(error) ? error.code : String(error);
  }
};

/** A manager's artifacts: one command per schema, which is its input; the output is void. */
function served(schemas: unknown[], cluster: object = {}, command: object = {}): unknown[] {
  const commands = schemas.map((schema, i) => ({
    name: `command-${i}`,
    input: { $ref: digestOf(schema) },
    output: { $ref: digestOf(V) },
    class: "ephemeral",
    targeted: false,
    modes: [],
    capability: "manager.any",
    effect: "write",
    traits: [],
    ...command,
  }));
  const document = { urn: "ai.cotal.manager", revision: 1, attributes: [], commands, events: [], ...cluster };
  return [document, ...schemas, V];
}
const servedCode = (...given: Parameters<typeof served>) => codeOf(() => readManagerArtifacts(served(...given)));

describe("the worked example", () => {
  const contract = readManagerArtifacts([C, I, V]);

  it("has the digests of the chapter", () => {
    expect(digestOf(I)).toBe(DIGEST.artifactI);
    expect(schemaClosure(I)).toBe(DIGEST.closureI);
    expect(digestOf(V)).toBe(DIGEST.artifactV);
    expect(schemaClosure(V)).toBe(DIGEST.closureV);
    expect(digestOf(C)).toBe(DIGEST.artifactC);
    expect(contract.clusterDigest).toBe(DIGEST.cluster);
  });

  it("hashes for proof U each artifact as sent", () => {
    expect([C, I, V].map((artifact) => digestOfBytes(JSON.stringify(artifact)))).toEqual([
      "sha256:cbf0c37ec10e65bf57632bb8da9d8f7d71331ec1fbbabd8fec91ca2446c8c3a9",
      "sha256:7687655d79ad095b0395bad2e8be33a5ac17109b733706da52124518f97718f6",
      "sha256:bcde375ebd4cbacf651311181173836b169d5a360c6ac158c6a2cdaf49be3f61",
    ]);
  });

  it("gives the one command with both closure digests", () => {
    expect(contract.cluster).toEqual(C);
    expect(contract.commands).toEqual([
      {
        name: "echo",
        class: "ephemeral",
        targeted: false,
        modes: [],
        capability: "manager.echo",
        effect: "write",
        traits: [],
        inputDigest: DIGEST.closureI,
        outputDigest: DIGEST.closureV,
      },
    ]);
  });

  it("stands in the stream as three documents and three manifests", () => {
    const { artifactI, artifactV, artifactC, closureI, closureV, cluster } = DIGEST;
    expect(contract.artifacts.map(({ digest }) => digest).sort()).toEqual(
      [artifactI, artifactV, artifactC, closureI, closureV, cluster].sort(),
    );
    for (const { digest, text } of contract.artifacts) expect(digestOfBytes(text)).toBe(digest);
  });

  it("comes out the same in any order, with members in any order", () => {
    const shuffled = { ...Object.fromEntries(Object.entries(I).toReversed()) };
    fc.assert(
      fc.property(fc.shuffledSubarray([C, shuffled, V], { minLength: 3 }), (artifacts) => {
        expect(readManagerArtifacts(artifacts).clusterDigest).toBe(DIGEST.cluster);
      }),
    );
  });

  it("ignores what the cluster document does not reach", () => {
    const more = [{ type: "boolean" }, V, { urn: "ai.cotal.other", anything: ["goes"] }];
    expect(readManagerArtifacts([...more, C, I, V]).clusterDigest).toBe(DIGEST.cluster);
    expect(readManagerArtifacts([...more, C, I, V]).artifacts).toHaveLength(6);
  });
});

describe("a manager's artifacts are refused", () => {
  it("without a cluster document, or with two", () => {
    expect(codeOf(() => readManagerArtifacts([I, V]))).toBe("contract-invalid");
    expect(codeOf(() => readManagerArtifacts([]))).toBe("contract-invalid");
    expect(codeOf(() => readManagerArtifacts([C, C, I, V]))).toBe("contract-invalid");
    expect(codeOf(() => readManagerArtifacts([{ ...C, urn: "ai.cotal.auth" }, I, V]))).toBe("contract-invalid");
  });

  it("where a reference has no artifact, or has one that is no schema", () => {
    expect(codeOf(() => readManagerArtifacts([C, I]))).toBe("contract-invalid");
    const foreign = { urn: "ai.cotal.other" };
    const commands = [{ ...C.commands[0], input: { $ref: digestOf(foreign) } }];
    expect(codeOf(() => readManagerArtifacts([{ ...C, commands }, foreign, I, V]))).toBe("contract-invalid");
  });

  it.each<[string, object, object]>([
    ["a name declared twice", {}, { name: "twice" }],
    ["a reserved name", {}, { name: "describe" }],
    ["a name outside the grammar", {}, { name: "__proto__" }],
    ["another class", {}, { class: "journal" }],
    ["an unknown mode", {}, { modes: ["everyone"] }],
    ["traits", {}, { traits: ["fast"] }],
    ["an unknown member of a command", {}, { handler: "rm" }],
    ["an unknown member of the document", { owner: "local" }, {}],
    ["events", { events: [{}] }, {}],
    ["a revision that is no integer", { revision: 1.5 }, {}],
    ["a remote reference", {}, { input: { $ref: "https://example.test/schema" } }],
  ])("for %s", (what, cluster, command) => {
    const schemas = what === "a name declared twice" ? [I, { type: "boolean" }] : [I];
    expect(servedCode(schemas)).toBe("accepted");
    expect(servedCode(schemas, cluster, command)).toBe("contract-invalid");
  });

  it("over the limits of a document and of a closure", () => {
    const large = (n: number, id: number) => ({ description: "x".repeat(n), title: String(id), type: "null" });
    expect(servedCode([large(CONTRACT.maxDocumentBytes - 100, 0)])).toBe("accepted");
    expect(servedCode([large(CONTRACT.maxDocumentBytes, 0)])).toBe("contract-invalid");
    expect(servedCode([0, 1, 2, 3].map((i) => large(CONTRACT.maxDocumentBytes - 1_000, i)))).toBe("accepted");
    expect(servedCode([0, 1, 2, 3, 4].map((i) => large(CONTRACT.maxDocumentBytes - 1_000, i)))).toBe(
      "contract-invalid",
    );
  });

  it("nested deeper than the limit, however deep", () => {
    const nested = (depth: number): unknown => (depth === 1 ? { type: "null" } : { not: nested(depth - 1) });
    expect(servedCode([nested(CONTRACT.maxDepth)])).toBe("accepted");
    expect(servedCode([nested(CONTRACT.maxDepth + 1)])).toBe("contract-invalid");
    let hostile: unknown = "bottom";
    for (let i = 0; i < 50_000; i += 1) hostile = { default: hostile };
    expect(codeOf(() => readManagerArtifacts([C, I, V, hostile]))).toBe("contract-invalid");
  });

  it("when one nobody refers to is outside the profile", () => {
    for (const artifact of [{ type: "string" }, { pattern: "(?=a)" }, null, 7, "text", [], true]) {
      expect(codeOf(() => readManagerArtifacts([C, I, V, artifact]))).toBe("contract-invalid");
    }
  });

  it("with the code of the wire and nothing of their content, whatever they are", () => {
    const secret = "SUAsecret";
    const anything = fc.jsonValue({ maxDepth: 5 }).map((value) => JSON.parse(JSON.stringify(value)) as Json);
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 4 }), (artifacts) => {
        const hidden = { const: secret, patternProperties: { [secret]: {} } };
        try {
          readManagerArtifacts([hidden, ...artifacts]);
        } catch (error) {
          if (!(error instanceof AuthorityError)) throw error;
          expect(error.code).toBe("contract-invalid");
          expect(error.message).not.toContain(secret);
        }
      }),
    );
  });
});

describe("a closure read back", () => {
  const contract = readManagerArtifacts([C, I, V]);
  const stored = () => new Map<Digest, Json>(contract.artifacts.map(({ digest, text }) => [digest, JSON.parse(text)]));
  const read = async (documents: Map<Digest, Json>, digest: Digest = contract.clusterDigest): Promise<string> => {
    const load = async (one: Digest): Promise<Json> => {
      const found = documents.get(one);
      if (found === undefined) throw new AuthorityError("failed-precondition", "missing");
      return found;
    };
    return readClosure(digest, load).then(
      (found) => found.clusterDigest,
      (error) => (isAuthorityError(error) ? error.code : String(error)),
    );
  };
  const manifest = (root: Digest, members: Digest[]) => artifactOf({ v: 1, root, members });
  const [i, v, c] = [digestOf(I), digestOf(V), digestOf(C)];

  it("is the contract that was written", async () => {
    expect(await read(stored())).toBe(contract.clusterDigest);
  });

  it("is refused with a member that is not what its digest says", async () => {
    for (const digest of [i, v, c, contract.clusterDigest]) {
      expect(await read(stored().set(digest, { type: "boolean" }))).toBe("contract-invalid");
    }
  });

  it("passes on what loading says of a missing member", async () => {
    const documents = stored();
    documents.delete(v);
    expect(await read(documents)).toBe("failed-precondition");
  });

  it("is refused where the manifest is another than that of the root", async () => {
    const more = artifactOf({ type: "boolean" });
    const forged = [
      manifest(c, [v, i].sort().toReversed()),
      manifest(c, [i, v, more.digest].sort()),
      manifest(c, [i, i, v].sort()),
      manifest(i, [c, v].sort()),
      artifactOf({ root: c, members: [i, v].sort() }),
      artifactOf({ v: 1, root: c, members: [i, v].sort(), by: "me" }),
    ];
    for (const { digest, text } of forged) {
      const documents = stored().set(digest, JSON.parse(text)).set(more.digest, { type: "boolean" });
      expect(await read(documents, digest)).toBe("contract-invalid");
    }
  });

  it("is not that of a service of ours", async () => {
    const documents = new Map<Digest, Json>(
      authContracts.artifacts.map(({ digest, text }) => [digest, JSON.parse(text)]),
    );
    expect(await read(documents, authContracts.clusterDigest)).toBe("contract-invalid");
  });
});
