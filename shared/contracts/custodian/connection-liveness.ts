import Type from "typebox";
import { CUSTODIAN } from "../../limits.ts";
import { exampleNkey } from "../example.ts";
import { Closed, operation } from "../operation.ts";
import { Text } from "../shapes.ts";
import { ConnectionTuple, TupleVerdict } from "./liveness.ts";

const exampleTuple = { serverId: `N${"A".repeat(55)}`, cid: 42, userNkey: exampleNkey("A") };

export const connectionLiveness = operation({
  service: "custodian",
  name: "connection-liveness",
  summary: "Says whether the connections of a claim's holder still exist",
  effect: "read",
  input: Closed({ ledger: ConnectionTuple, records: ConnectionTuple }),
  output: Closed({
    ledger: TupleVerdict,
    records: TupleVerdict,
    sweepComplete: Type.Boolean(),
    note: Type.Optional(Text(CUSTODIAN.maxNote, 0)),
  }),
  callers: ["authority"],
  errors: ["permission-denied", "resource-exhausted", "unavailable"],
  example: { ledger: exampleTuple, records: exampleTuple },
});
