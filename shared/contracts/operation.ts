/**
 * An operation is declared once. Endpoint, digests, grant rows, gateway route, client call,
 * reference page and the tests of the road derive from the declaration (wire §6).
 */
import type { Static, TSchema } from "typebox";
import Type from "typebox";
import { canonicalText, digestOf } from "../canonical.ts";
import type { ErrorCode } from "../errors.ts";
import type { Mode } from "../subjects.ts";
import type { Digest } from "../tokens.ts";

export type ServiceName = "auth" | "exchange" | "custodian";
export type Effect = "read" | "write";

/**
 * Who may be the caller (operations §1; identity §8; lifecycles §2):
 * `human` a person behind a gateway, `session-holder` a person's own connection, `manager` its supervisor
 * connection, `requester` its retirement requester, `platform` and `supervisor` the inner request of a door,
 * `operator`, `host` and `gateway` provisioned users, `admin` a person under view `admin`,
 * `authority` the `auth` service itself, `anyone` whoever the broker lets publish.
 */
export type CallerKind =
  | "human"
  | "session-holder"
  | "manager"
  | "requester"
  | "platform"
  | "supervisor"
  | "operator"
  | "admin"
  | "host"
  | "gateway"
  | "authority"
  | "anyone";

/** The HTTP body that reaches this operation through `POST /manager-service-authority` (operations §4). */
export interface HttpKind {
  readonly kind: string;
  readonly operation?: string;
  /** The member of the request that tells operations of one kind apart. */
  readonly member?: string;
}

export interface Operation<
  I extends TSchema = TSchema,
  O extends TSchema = TSchema,
  H extends HttpKind | undefined = HttpKind | undefined,
> {
  readonly service: ServiceName;
  /** The command on the rail. */
  readonly name: string;
  /** One sentence for `nats micro info` and the reference. */
  readonly summary: string;
  readonly effect: Effect;
  readonly capability: string;
  readonly input: I;
  readonly output: O;
  readonly callers: readonly CallerKind[];
  /** The scope that check C3 asks of the granting row. */
  readonly scope?: "supervise";
  /** The `auth` slot may carry an identity provider's token. */
  readonly auth: boolean;
  readonly targeted: boolean;
  readonly modes: readonly Mode[];
  readonly http?: H;
  /** Codes beyond those of the road, for the reference. */
  readonly errors: readonly ErrorCode[];
  /** Arguments for the reference page; valid against `input`. */
  readonly example: unknown;
}

export type Input<O extends Operation> = Static<O["input"]>;
export type Output<O extends Operation> = Static<O["output"]>;

type Declared<I extends TSchema, O extends TSchema, H extends HttpKind | undefined> = Pick<
  Operation<I, O, H>,
  "service" | "name" | "summary" | "effect" | "input" | "output" | "callers"
> &
  Partial<Pick<Operation<I, O, H>, "scope" | "auth" | "modes" | "http" | "errors" | "example">>;

export function operation<const I extends TSchema, const O extends TSchema, H extends HttpKind | undefined = undefined>(
  declared: Declared<I, O, H>,
): Operation<I, O, H> {
  const { modes = [], errors = [], example = null, auth = declared.callers.includes("human") } = declared;
  return Object.freeze({
    ...declared,
    capability: `${declared.service}.${declared.name}`,
    auth,
    targeted: modes.length > 0,
    modes,
    errors,
    example,
  });
}

/** A side without payload. */
export const Void = Type.Null();

/** A closed object: what every schema here is made of. */
export const Closed = <P extends Type.TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

export interface Artifact {
  readonly digest: Digest;
  /** The RFC 8785 bytes, as text. */
  readonly text: string;
}

export interface Pair {
  readonly inputDigest: Digest;
  readonly outputDigest: Digest;
}

export interface CommandEntry {
  readonly name: string;
  readonly input: { readonly $ref: Digest };
  readonly output: { readonly $ref: Digest };
  readonly class: "ephemeral";
  readonly targeted: boolean;
  readonly modes: readonly Mode[];
  readonly capability: string;
  readonly effect: Effect;
  readonly traits: readonly [];
}

export interface ClusterDocument {
  readonly urn: string;
  readonly revision: number;
  readonly attributes: readonly [];
  readonly commands: readonly CommandEntry[];
  readonly events: readonly [];
}

/** Everything a service publishes about what it serves. */
export interface ContractSet {
  readonly urn: string;
  readonly cluster: ClusterDocument;
  /** Closure digest of the cluster: `contract`, `clusterDigests`. */
  readonly clusterDigest: Digest;
  readonly pairs: ReadonlyMap<string, Pair>;
  readonly artifacts: readonly Artifact[];
}

export const artifactOf = (document: unknown): Artifact => ({
  digest: digestOf(document),
  text: canonicalText(document),
});

/** The manifest of a closure: its root and all that is reachable from it, the root itself excluded (wire §6). */
export const manifestOf = (root: Digest, members: readonly Digest[]) => ({
  v: 1 as const,
  root,
  members: [...new Set(members)].sort(),
});

/** The closure digest of a document that references nothing, as every schema here. */
export const schemaClosure = (schema: unknown): Digest => digestOf(manifestOf(digestOf(schema), []));

const pairOf = (op: Operation): Pair => ({
  inputDigest: schemaClosure(op.input),
  outputDigest: schemaClosure(op.output),
});

/** Builds artifacts and digests of one service's operations. `describe` is reserved and stands in no cluster document. */
export function contractSet(urn: string, operations: readonly Operation[]): ContractSet {
  const listed = operations.filter((op) => op.name !== "describe").sort((a, b) => (a.name < b.name ? -1 : 1));
  const artifacts = new Map<Digest, Artifact>();
  const add = (document: unknown): Digest => {
    const artifact = artifactOf(document);
    artifacts.set(artifact.digest, artifact);
    return artifact.digest;
  };
  const schema = (document: unknown): Digest => {
    const digest = add(document);
    add(manifestOf(digest, []));
    return digest;
  };
  const cluster: ClusterDocument = {
    urn,
    revision: 1,
    attributes: [],
    commands: listed.map((op) => ({
      name: op.name,
      input: { $ref: schema(op.input) },
      output: { $ref: schema(op.output) },
      class: "ephemeral",
      targeted: op.targeted,
      modes: op.modes,
      capability: op.capability,
      effect: op.effect,
      traits: [],
    })),
    events: [],
  };
  const members = cluster.commands.flatMap((command) => [command.input.$ref, command.output.$ref]);
  const clusterDigest = add(manifestOf(add(cluster), members));
  return {
    urn,
    cluster,
    clusterDigest,
    pairs: new Map(listed.map((op) => [op.name, pairOf(op)])),
    artifacts: [...artifacts.values()],
  };
}
