/** Values of the examples on the reference page. No key here has a holder. */
export const EXAMPLE = {
  space: "demo",
  owner: "u_qzgcmqkl3272ed2stsjzbvrqga",
  platformOwner: "p_ilxxrccdpxzd2m7d2hy6qodx2i",
  actor: "cli",
  instanceId: "1a7d0f9k2m4p6r8t0v2x4z6b8d",
  managerLifecycleUid: "7k3m5p7r9t1v3x5z7b9d1f3h5j",
  lifecycleUid: "0t9p2r4t6v8x0z2b4d6f8h0j2m",
  requestId: "mJ0hZ2Qm1xVb7sKQd4tYpA",
  digest: `sha256:${"0f".repeat(32)}`,
  runId: "run-9c2e5a7b1d3f4e6a8c0b2d4f6a8c0e1f",
  opId: "b5beb5e4f583874a2f0947bbbd",
  account: `A${"B".repeat(55)}`,
} as const;

/** A distinct user nkey per letter. */
export const exampleNkey = (letter: string): string => `U${letter.repeat(55)}`;

export const exampleIncarnation = {
  owner: EXAMPLE.owner,
  actor: "coder",
  lifecycleUid: EXAMPLE.lifecycleUid,
};

const identities = {
  supervisor: { id: exampleNkey("A") },
  executor: { id: exampleNkey("B") },
  serve: { id: exampleNkey("C") },
  goalWriter: { id: exampleNkey("D") },
  sessionLedger: { id: exampleNkey("E") },
};

/** The manager request envelope (operations §2). */
export const exampleEnvelope = (kind: string, operation?: string) => ({
  v: 1,
  kind,
  ...(operation === undefined ? {} : { operation }),
  space: EXAMPLE.space,
  actor: EXAMPLE.actor,
  instanceId: EXAMPLE.instanceId,
  managerLifecycleUid: EXAMPLE.managerLifecycleUid,
  requestId: EXAMPLE.requestId,
  identities,
});
export const exampleProof = { registrationProof: EXAMPLE.digest };
export const exampleAccount = { accountPublicKey: EXAMPLE.account, processEpoch: 3 };
export const exampleServe = { serveEpoch: 3 };

/** A manager's contract of one command, `echo` (records §6). */
export const EXAMPLE_ARTIFACTS = [
  {
    urn: "ai.cotal.manager",
    revision: 1,
    attributes: [],
    commands: [
      {
        name: "echo",
        input: { $ref: "sha256:9f063238037f4d384177a922281f309b165b757e3a58cf8c2d7def6208bb5ead" },
        output: { $ref: "sha256:bcde375ebd4cbacf651311181173836b169d5a360c6ac158c6a2cdaf49be3f61" },
        class: "ephemeral",
        targeted: false,
        modes: [],
        capability: "manager.echo",
        effect: "write",
        traits: [],
      },
    ],
    events: [],
  },
  {
    type: "object",
    properties: { text: { type: "string", maxLength: 64 } },
    required: ["text"],
    additionalProperties: false,
  },
  { type: "null" },
] as const;
