import { Compile } from "typebox/compile";
import { describe, expect, it } from "vitest";
import type { Json } from "../../../shared/canonical.ts";
import { authContracts, authOperations } from "../../../shared/contracts/auth.ts";
import { custodianContracts } from "../../../shared/contracts/custodian.ts";
import { exchangeContracts } from "../../../shared/contracts/exchange.ts";
import { type Operation, Void } from "../../../shared/contracts/operation.ts";
import { checkSchema } from "../../../shared/contracts/schema-rules.ts";
import { CONTRACT, WIRE } from "../../../shared/limits.ts";
import { everyOperation, named } from "./every-operation.ts";

const VOID_ARTIFACT = "sha256:bcde375ebd4cbacf651311181173836b169d5a360c6ac158c6a2cdaf49be3f61";
const VOID_CLOSURE = "sha256:1db0472aaee8e6b9d8d3d430ee021a1b6efc559ab7c0b99186898c972c53dd2d";

const sets = [authContracts, exchangeContracts, custodianContracts] as const;

/** Every schema object inside a schema, with its place. Member names under `properties` are no keywords. */
function* within(schema: Json, path = ""): Generator<{ path: string; at: { [key: string]: Json } }> {
  if (schema === null || typeof schema !== "object") return;
  if (Array.isArray(schema)) {
    for (const [i, one] of schema.entries()) yield* within(one, `${path}/${i}`);
    return;
  }
  yield { path, at: schema };
  for (const [name, one] of Object.entries(schema)) {
    if (name === "enum" || name === "const") continue;
    if (name !== "properties") yield* within(one, `${path}/${name}`);
    else for (const [member, inner] of Object.entries(one ?? {})) yield* within(inner, `${path}/${member}`);
  }
}

const schemasOf = (operation: Operation) => [
  ...within(JSON.parse(JSON.stringify(operation.input)), "input"),
  ...within(JSON.parse(JSON.stringify(operation.output)), "output"),
];

describe.each(named)("the declaration of %s", (_, operation) => {
  it("has an example that its input admits", () => {
    expect(Compile(operation.input).Errors(operation.example)).toEqual([]);
  });

  it("stays within the schema profile", () => {
    expect(() => checkSchema(operation.input)).not.toThrow();
    expect(() => checkSchema(operation.output)).not.toThrow();
  });

  it("bounds every integer by what I-JSON carries", () => {
    for (const { path, at } of schemasOf(operation)) {
      if (at.type !== "integer" && at.type !== "number") continue;
      if (at.const !== undefined) continue;
      expect(at.type, path).toBe("integer");
      expect(Number(at.minimum), path).toBeGreaterThanOrEqual(0);
      expect(Number(at.maximum), path).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER);
    }
  });

  it("leaves nothing open but what another schema judges", () => {
    const open = schemasOf(operation).filter(({ at }) => Object.keys(at).length === 0);
    const places = open.map(({ path }) => path).filter((path) => !/\/(traits|attributes|events)\/items$/.test(path));
    const admitted: Record<string, string[]> = {
      "manager-activate": ["input/contractArtifacts/items"],
      "platform-control": ["input/request"],
      "supervisor-authority": ["input/request"],
    };
    expect(places).toEqual(admitted[operation.name] ?? []);
  });

  it("refuses an unlisted member at every level of its example", () => {
    const check = Compile(operation.input);
    for (const spoilt of spoil(operation.example as Json)) expect(check.Check(spoilt)).toBe(false);
  });

  it("fits its documents into the limits", () => {
    for (const schema of [operation.input, operation.output]) {
      expect(JSON.stringify(schema).length).toBeLessThanOrEqual(CONTRACT.maxDocumentBytes);
    }
    expect(JSON.stringify(operation.example).length).toBeLessThanOrEqual(WIRE.maxBody);
  });

  it("carries an identity provider's token only where a gateway forwards one", () => {
    const forwarded = operation.callers.includes("human") || operation.name === "exchange-user";
    expect(operation.auth).toBe(forwarded);
    expect(operation.http !== undefined).toBe(operation.callers.includes("human"));
  });
});

/** The value with one member too many, once per object in it, free-form places aside. */
function* spoil(value: Json): Generator<Json> {
  if (value === null || typeof value !== "object") return;
  if (Array.isArray(value)) {
    for (const [i, one] of value.entries()) for (const worse of spoil(one)) yield value.with(i, worse);
    return;
  }
  yield { ...value, by: "mallory" };
  yield JSON.parse(`{${JSON.stringify(value).slice(1, -1)}${Object.keys(value).length > 0 ? "," : ""}"__proto__":{}}`);
  for (const [name, one] of Object.entries(value)) {
    if (name === "contractArtifacts" || name === "request") continue;
    for (const worse of spoil(one)) yield { ...value, [name]: worse };
  }
}

/** The operations of the chapter (operations §13); what is added later stands in the list of its service alone. */
const SUMMARY = [
  ...["run-admit", "run-revoke", "run-attempt", "run-operator"],
  ...["manager-prepare", "manager-register", "manager-activate", "manager-renew", "manager-renew-standing"],
  ...["manager-renew-run", "manager-transfer-reader", "manager-retire", "manager-session", "manager-session-end"],
  ...["manager-maintain-evict", "manager-maintain-reconcile", "manager-scan-goals", "manager-authorize-admin"],
  ...["agent-validate-retained", "agent-runtime-create", "agent-runtime-status", "agent-enroll"],
  ...["agent-prepare-retirement", "retire-lifecycle", "agent-retire", "drain-abandon"],
  ...["actor-grant", "actor-renew", "actor-revoke", "actor-list"],
  ...["platform-assign", "supervisor-assign", "platform-control", "supervisor-authority"],
  ...["supervisor-end", "instance-retire", "describe"],
];
const ofSummary = authOperations.filter(({ name }) => SUMMARY.includes(name));

describe("the lists of the three services", () => {
  it("name each operation once, within the grammar of commands", () => {
    const capabilities = everyOperation.map(({ capability }) => capability);
    expect(new Set(capabilities).size).toBe(capabilities.length);
    for (const { name, capability } of everyOperation) {
      expect(name).toMatch(/^[a-z0-9-]{1,32}$/);
      expect(capability.length).toBeLessThanOrEqual(64);
    }
  });

  it("hold every operation of the summary", () => {
    const held = new Set(authOperations.map(({ name }) => name));
    expect(SUMMARY.filter((name) => !held.has(name))).toEqual([]);
  });

  it("read where repeating changes nothing, and write everywhere else", () => {
    const known = everyOperation.filter(({ service, name }) => service !== "auth" || SUMMARY.includes(name));
    const reads = known.filter(({ effect }) => effect === "read").map(({ capability }) => capability);
    expect(reads.sort()).toEqual([
      "auth.actor-list",
      "auth.agent-runtime-status",
      "auth.agent-validate-retained",
      "auth.describe",
      "auth.manager-authorize-admin",
      "auth.manager-scan-goals",
      "custodian.connection-liveness",
      "custodian.describe",
      "custodian.principal-liveness",
      "exchange.describe",
      "exchange.discovery",
      "exchange.exchange-agent",
      "exchange.exchange-user",
      "exchange.identify",
      "exchange.jwks",
    ]);
  });

  it("let a manager's own connection call exactly what the summary marks", () => {
    const not = [
      ...["retire-lifecycle", "agent-retire", "actor-grant", "actor-revoke", "actor-list", "drain-abandon"],
      ...["platform-assign", "supervisor-assign", "platform-control", "supervisor-authority"],
      ...["supervisor-end", "instance-retire", "describe"],
    ];
    const without = ofSummary.filter(({ callers }) => !callers.some((caller) => caller === "manager"));
    expect(without.map(({ name }) => name).sort()).toEqual(not.sort());
  });

  it("ask for scope supervise exactly where the scope rule does", () => {
    const managers = ofSummary.filter(({ name }) => /^(run|manager|agent)-/.test(name));
    for (const { name, scope } of managers) {
      const free = ["run-revoke", "manager-session-end", "agent-retire"].includes(name);
      expect(scope, name).toBe(free ? undefined : "supervise");
    }
    for (const operation of ofSummary) if (!managers.includes(operation)) expect(operation.scope).toBeUndefined();
  });

  it("target one incarnation in retire-lifecycle and nothing anywhere else", () => {
    for (const { name, modes, targeted } of everyOperation) {
      expect(modes).toEqual(name === "retire-lifecycle" ? ["exact"] : []);
      expect(targeted).toBe(name === "retire-lifecycle");
    }
  });
});

describe("the published contracts", () => {
  it("give the void side the digests of the wire", () => {
    const retired = authContracts.pairs.get("agent-runtime-create");
    expect(retired?.outputDigest).toBe(VOID_CLOSURE);
    expect(authContracts.artifacts.find(({ digest }) => digest === VOID_ARTIFACT)?.text).toBe(JSON.stringify(Void));
    expect(authContracts.artifacts.some(({ digest }) => digest === VOID_CLOSURE)).toBe(true);
  });

  it.each(sets.map((set) => [set.urn, set] as const))("of %s list commands by name, without describe", (_, set) => {
    const names = set.cluster.commands.map(({ name }) => name);
    expect(names).toEqual(names.toSorted());
    expect(names).not.toContain("describe");
    expect([...set.pairs.keys()]).toEqual(names);
    expect(set.cluster.revision).toBe(1);
    const bytes = set.artifacts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    expect(bytes).toBeLessThanOrEqual(CONTRACT.maxClosureBytes);
  });

  it.each(sets.map((set) => [set.urn, set] as const))("of %s are described within their own schema", (_, set) => {
    const [describeOperation] = everyOperation.filter(
      ({ name, service }) => name === "describe" && set.urn.endsWith(service),
    );
    const descriptor = {
      endpoint: set.urn.slice("ai.cotal.".length),
      owner: "local",
      instanceId: "i".repeat(26),
      epoch: 0,
      registrationRevision: 0,
      protocol: { v: 2 },
      clusterDigests: [set.clusterDigest],
      clusters: [set.cluster],
      commands: [...set.pairs].map(([name, pair]) => ({ name, ...pair })),
    };
    const check = Compile(describeOperation?.output ?? Void);
    expect(check.Errors({ v: 1, public: true, descriptor })).toEqual([]);
  });
});
