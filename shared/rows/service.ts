/** `svc.<e>.<iid>.spec` and `.status`: the registry of endpoints (records §5, wire §8). */
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { Digest, EndpointLabel, Owner, Uid } from "../tokens.ts";
import { family } from "./family.ts";
import { Count, closed, Ms, open, Text } from "./members.ts";

const specMembers = { endpoint: EndpointLabel.schema, clusterDigests: Type.Array(Digest.schema) };

/** As a manager's executor writes it. */
const SpecRow = open({
  ...specMembers,
  owner: Owner.schema,
  protocol: open({ v: Type.Union([Type.Literal(1), Type.Literal(2)]) }),
  endpointType: Type.Optional(Text),
  activation: Type.Optional(Text),
});
export type ServiceSpec = Static<typeof SpecRow>;

/** As the registrar writes that of `auth`. */
const OwnSpec = Compile(
  closed({ ...specMembers, owner: Type.Literal("local"), protocol: closed({ v: Type.Literal(2) }) }),
);

const StatusRow = open({
  epoch: Count,
  state: Text,
  observedSpecRevision: Count,
  version: Type.Optional(Text),
  at: Type.Optional(Ms),
});
export type ServiceStatus = Static<typeof StatusRow>;

const OwnStatus = Compile(
  closed({ epoch: Count, state: Type.Literal("registered"), observedSpecRevision: Count, version: Text, at: Ms }),
);

const parts = { endpoint: EndpointLabel, instanceId: Uid };

export const serviceSpecRows = family({
  stream: "records",
  pattern: "svc.{endpoint}.{instanceId}.spec",
  parts,
  schema: SpecRow,
  agrees: (row, key) => row.endpoint === key.endpoint && (key.endpoint !== "auth" || OwnSpec.Check(row)),
  passes: (key) => key.endsWith(".status"),
});

export const serviceStatusRows = family({
  stream: "records",
  pattern: "svc.{endpoint}.{instanceId}.status",
  parts,
  schema: StatusRow,
  agrees: (row, key) => key.endpoint !== "auth" || OwnStatus.Check(row),
  admits: (from, to) => from === undefined || to.epoch >= from.epoch,
  passes: (key) => key.endsWith(".spec"),
});
