/** The reference of operations, made from their declarations alone. */
import { PLATFORM_OPERATIONS } from "../../shared/contracts/auth/assignments/platform-control.ts";
import { authOperations } from "../../shared/contracts/auth.ts";
import { custodianOperations } from "../../shared/contracts/custodian.ts";
import { exchangeOperations } from "../../shared/contracts/exchange.ts";
import type { CallerKind, Operation, ServiceName } from "../../shared/contracts/operation.ts";
import { type Row, SchemaText } from "./schema-text.ts";
import { SHAPES, TOKENS } from "./shapes.ts";

/** The committed page. */
export const REFERENCE_FILE = new URL("../../docs/reference/operations.md", import.meta.url);

const SERVICES: readonly { name: ServiceName; says: string; operations: readonly Operation[] }[] = [
  { name: "auth", says: "Decides and writes: the one writer of the authority's rows.", operations: authOperations },
  { name: "exchange", says: "Turns logins and secrets into bearers.", operations: exchangeOperations },
  { name: "custodian", says: "Proves connections gone.", operations: custodianOperations },
];

const CALLERS: Readonly<Record<CallerKind, string>> = {
  human: "a person behind a gateway",
  "session-holder": "the holder of a session, on its own connection",
  manager: "a manager's supervisor connection",
  requester: "a manager's retirement requester",
  platform: "the platform, through `platform-control`",
  supervisor: "a platform supervisor, through `supervisor-authority`",
  operator: "the operator",
  admin: "a person under view `admin`",
  host: "the platform host",
  gateway: "a gateway",
  authority: "`auth` itself",
  anyone: "whoever the broker lets publish",
};

const anchor = (name: string): string =>
  `#${name
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-")}`;
const link = (name: string): string => `[${name}](${anchor(name)})`;

const operations = SERVICES.flatMap(({ operations }) => operations);
const text = new SchemaText([
  ...PLATFORM_OPERATIONS.map(({ name, output }) => ({ name, schema: output, says: `the result of ${link(name)}` })),
  ...TOKENS.map(({ name, schema }) => ({ name, schema, says: `[${name}](#tokens)` })),
  ...SHAPES.map(({ name, schema }) => ({ name, schema, says: link(name) })),
]);

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

const memberTable = (rows: readonly Row[]): string =>
  table(
    ["member", "type", ""],
    rows.map(({ member, type, required }) => [`\`${member}\``, type, required ? "" : "optional"]),
  );

function side(title: string, schema: Operation["input"]): string {
  const rows = text.rows(schema);
  const plain = text.line(schema);
  if (rows.length > 0) return `${title}:\n\n${memberTable(rows)}`;
  if (plain === "null") return `${title}: none.`;
  return `${title}: ${plain === "object" ? "`{}`" : plain}.`;
}

function httpOf({ service, name, http }: Operation): string | undefined {
  if (http) {
    const parts = [`kind \`${http.kind}\``];
    if (http.operation) parts.push(`operation \`${http.operation}\``);
    if (http.member) parts.push(`with \`${http.member}\``);
    return `\`POST /manager-service-authority\`, ${parts.join(", ")}`;
  }
  const routes: Readonly<Record<string, string>> = {
    "exchange-user": "`POST /exchange` with `idpToken`",
    "exchange-agent": "`POST /exchange` with `actorToken`",
    jwks: "`GET /jwks`",
    discovery: "`GET /.well-known/cotal-mesh`",
  };
  return service === "exchange" ? routes[name] : undefined;
}

function section(operation: Operation): string {
  const { service, name, summary, effect, callers, scope, auth, modes, errors } = operation;
  const target = modes.length > 0 ? `${modes.join("|")}.<target owner>.<target actor>.<target uid>.` : "";
  const facts: [string, string | undefined][] = [
    ["subject", `\`cotal.<space>.ep.one.${service}.${name}.${target}<owner>.<actor>.<uid>.<nonce>\``],
    ["HTTP", httpOf(operation)],
    ["callers", callers.map((caller) => CALLERS[caller]).join("; ")],
    ["scope", scope && `\`${scope}\``],
    ["login", auth ? "an identity provider's token in `auth`, from a gateway alone" : undefined],
    ["effect", effect],
    ["refusals", errors.map((code) => `\`${code}\``).join(", ") || "those of every request"],
  ];
  const known = facts.flatMap(([what, says]) => (says === undefined ? [] : [[what, says]]));
  const parts = [
    `### ${name}`,
    `${summary}.`,
    table(["", ""], known),
    side("Arguments", operation.input),
    side("Result", operation.output),
  ];
  if (operation.example !== null) {
    parts.push(`Example of arguments:\n\n\`\`\`json\n${JSON.stringify(operation.example, null, 2)}\n\`\`\``);
  }
  return parts.join("\n\n");
}

const overview = (operations: readonly Operation[]): string =>
  table(
    ["operation", "", "effect", "HTTP"],
    operations.map((operation) => [
      link(operation.name),
      operation.summary,
      operation.effect,
      httpOf(operation) ? "yes" : "",
    ]),
  );

const PREFACE = `# Operations

Made from the declarations under \`shared/contracts\` by \`npm run docs\`.

Every operation is one NATS subject. A request is an envelope whose \`args\` are the arguments below, whose
\`op.inputDigest\` and \`op.outputDigest\` are the pair that \`describe\` gives, and whose \`from.id\` is the principal on the
subject. Arguments are closed: an unlisted member is \`bad-request\`. Integers are 0 to 2^53 - 1. Times are milliseconds,
but \`exp\` of tokens, credentials and sessions is in seconds.

A person reaches the operations that have an HTTP row through the gateway, which puts the login into \`auth\` and forwards
the rest unchanged.

Any request may be refused with \`bad-request\`, \`unsupported-version\`, a \`…-mismatch\`, \`permission-denied\`,
\`resource-exhausted\`, \`unavailable\`, \`deadline-exceeded\` or \`internal\`; with a login that proves nobody,
\`unauthenticated\`; on the uid of a former incarnation, \`expired\`. What an operation refuses beyond that, or for reasons
of its own, stands in its row *refusals*. \`outcome\` says what became of the request's effect.`;

/** The whole page. \`describe\` is told once, since it is the same for all three. */
export function reference(): string {
  const [describe] = operations.filter(({ name }) => name === "describe");
  const services = SERVICES.map(({ name, says, operations }) => {
    const own = operations.filter((operation) => operation !== describe && operation.name !== "describe");
    return [`## ${name}`, says, overview(own), ...own.map(section)].join("\n\n");
  });
  const common = describe
    ? [
        "## Every service",
        section({ ...describe, summary: "Says which operations this incarnation serves" }).replace(
          `ep.one.${describe.service}.`,
          "ep.one.<service>.",
        ),
      ]
    : [];
  const shapes = SHAPES.map(({ name, says, schema }) =>
    [`### ${name}`, says, memberTable(text.rows(schema))].join("\n\n"),
  );
  const tokens = table(
    ["token", "pattern"],
    TOKENS.map(({ name, pattern }) => [name, `\`${pattern.replaceAll("|", "\\|")}\``]),
  );
  return `${[PREFACE, ...services, ...common, "## Shapes", ...shapes, "## Tokens", tokens].join("\n\n")}\n`;
}
