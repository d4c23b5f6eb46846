import { describe, expect, it } from "vitest";
import { judge } from "../../../services/custodian/complete.ts";
import type { Statsz, Varz } from "../../../services/custodian/replies.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import type { ServerNkey } from "../../../shared/tokens.ts";

const ids = ["a", "b", "c"].map(() => createKeyPair("server").public as ServerNkey);
const [idA, idB, idC] = ids as [ServerNkey, ServerNkey, ServerNkey];

interface Heard {
  statsz: (Statsz | undefined)[];
  varz: (Varz | undefined)[];
}

const statsz = (id: ServerNkey, name: string, more: Partial<Statsz> = {}): Statsz => ({
  id,
  name,
  cluster: "",
  routes: [],
  gateways: false,
  jetstream: true,
  ...more,
});
const varz = (id: ServerNkey, name: string, more: Partial<Varz> = {}): Varz => ({
  id,
  name,
  cluster: "",
  gateways: false,
  authTimeoutMs: 5_000,
  ...more,
});

const single = (more: Partial<Statsz> = {}): Heard => ({
  statsz: [statsz(idA, "a", more)],
  varz: [varz(idA, "a", more.cluster === undefined ? {} : { cluster: more.cluster })],
});

const members = [
  [idA, "a"],
  [idB, "b"],
  [idC, "c"],
] as const;
const member = ([id, name]: (typeof members)[number]): Statsz =>
  statsz(id, name, {
    cluster: "x",
    routes: members.map(([, other]) => other).filter((other) => other !== name),
    metaSize: 3,
  });

/** Three servers of one cluster, each in sight of the others; `change` is applied to them by name. */
function cluster(change: Partial<Record<"a" | "b" | "c", Partial<Statsz> | null>> = {}): Heard {
  const present = members.filter(([, name]) => change[name] !== null);
  return {
    statsz: present.map((one) => ({ ...member(one), ...change[one[1]] })),
    varz: present.map(([id, name]) => varz(id, name, { cluster: change[name]?.cluster ?? "x" })),
  };
}

/** As the survivors see it once their routes to `c` are gone. */
const withoutC = (metaSize: number): Heard =>
  cluster({ a: { routes: ["b"], metaSize }, b: { routes: ["a"], metaSize }, c: null });

const cause = (heard: Heard, expectedServers?: number): string | undefined =>
  judge(heard, { maxServers: 8, ...(expectedServers === undefined ? {} : { expectedServers }) }).cause;

describe("completeness of a discovery", () => {
  it.each<[string, Heard, number | undefined]>([
    ["a single server", single(), undefined],
    ["a single server as expected", single(), 1],
    ["a single server without JetStream, as expected", single({ jetstream: false }), 1],
    ["a cluster whose servers all answer", cluster(), undefined],
    ["a cluster as expected", cluster(), 3],
    ["a cluster from whose meta group the lost server was removed", withoutC(2), undefined],
  ])("is given by %s", (_what, heard, expected) => {
    expect(cause(heard, expected)).toBeUndefined();
  });

  it.each<[string, string, Heard, number | undefined, string]>([
    ["a", "nobody answers", { statsz: [], varz: [] }, undefined, "no server answers STATSZ"],
    ["a", "a STATSZ is unreadable", { ...single(), statsz: [undefined] }, undefined, "a STATSZ reply is unreadable"],
    ["a", "a VARZ is unreadable", { ...cluster(), varz: [undefined] }, undefined, "a VARZ reply is unreadable"],
    [
      "a",
      "STATSZ is answered twice",
      { ...single(), statsz: [statsz(idA, "a"), statsz(idA, "a2")] },
      undefined,
      `server ${idA} answers STATSZ twice`,
    ],
    ["a", "VARZ is answered twice", { ...single(), varz: [varz(idA, "a"), varz(idA, "b")] }, 1, "answers VARZ twice"],
    ["a", "two have one name", cluster({ b: { name: "a" } }), undefined, "two servers are named a"],
    ["a", "VARZ is missing", { ...cluster(), varz: cluster().varz.slice(1) }, 3, "server a does not answer VARZ"],
    ["a", "STATSZ is missing", { ...cluster(), statsz: cluster().statsz.slice(1) }, 3, "a does not answer STATSZ"],
    ["a", "its names differ", { ...single(), varz: [varz(idA, "b")] }, undefined, "gives two names"],
    ["a", "its clusters differ", { ...cluster(), varz: [varz(idA, "a"), ...cluster().varz.slice(1)] }, 3, "two names"],
    ["b", "STATSZ shows a gateway", single({ gateways: true }), 1, "server a has gateways"],
    ["b", "VARZ shows a gateway", { ...single(), varz: [varz(idA, "a", { gateways: true })] }, 1, "a has gateways"],
    ["c", "it has a cluster and no meta group", single({ cluster: "x" }), 1, "reports a JetStream meta group"],
    ["c", "it has a route and no cluster", single({ routes: ["b"] }), 1, "outside any cluster"],
    ["c", "it has a meta group and no cluster", single({ metaSize: 1 }), 1, "outside any cluster"],
    [
      "d",
      "two servers without cluster answer",
      { statsz: [statsz(idA, "a"), statsz(idB, "b")], varz: [varz(idA, "a"), varz(idB, "b")] },
      2,
      "outside any cluster",
    ],
    ["d", "two clusters answer", cluster({ b: { cluster: "y" } }), 3, "servers of two clusters answer"],
    ["d", "one is routed to but silent", cluster({ c: null }), undefined, "a route to c, which does not answer"],
    ["d", "one has no route to another", cluster({ b: { routes: ["a"] } }), 3, "server b has no route to c"],
    ["e", "a lost server is still a peer", withoutC(3), undefined, "2 of the 3 servers in the meta group answer"],
    [
      "e",
      "not all follow the removal yet",
      cluster({ a: { routes: ["b"], metaSize: 2 }, b: { routes: ["a"] }, c: null }),
      2,
      "2 of the 3",
    ],
    [
      "e",
      "none reports a meta group",
      cluster({ a: { metaSize: undefined }, b: { metaSize: undefined }, c: { metaSize: undefined } }),
      3,
      "reports a JetStream meta group",
    ],
    ["f", "fewer answer than expected", single(), 2, "1 of 2 servers answer"],
    ["f", "more answer than expected", cluster(), 2, "3 of 2 servers answer"],
    ["f", "a single server has no JetStream", single({ jetstream: false }), undefined, "expectedServers is not set"],
    [
      "f",
      "one of a cluster has no JetStream",
      cluster({ c: { jetstream: false } }),
      undefined,
      "expectedServers is not set",
    ],
  ])("rule %s: is missing where %s", (_rule, _what, heard, expected, text) => {
    expect(cause(heard, expected)).toContain(text);
  });

  it("is missing where more servers answer than are walked", () => {
    expect(judge(cluster(), { maxServers: 2 }).cause).toBe("more than 2 servers answer");
  });

  it("names every server heard and the longest authentication, complete or not", () => {
    const heard: Heard = { statsz: [statsz(idA, "a")], varz: [varz(idB, "b", { authTimeoutMs: 7_000 }), undefined] };
    const { servers, authTimeoutMs } = judge(heard, { maxServers: 8 });
    expect([...servers]).toEqual([
      [idA, "a"],
      [idB, "b"],
    ]);
    expect(authTimeoutMs).toBe(7_000);
  });
});
