import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assertAttenuated, excessOf, type Link } from "../../shared/attenuation.ts";
import { AuthorityError, unavailable } from "../../shared/errors.ts";
import { Actor, Owner, type Principal, principalOf } from "../../shared/tokens.ts";

const owner = Owner.parse("u_qzgcmqkl3272ed2stsjzbvrqga");
const other = Owner.parse("u_5u2jprrmk6itxm7le3ec7flrxm");

function row(actor: string, more: Partial<Link> = {}): Link {
  return {
    owner,
    actor: Actor.parse(actor),
    state: "active",
    scope: [],
    allowSubscribe: [],
    allowPublish: [],
    ...more,
  };
}

const childOf = (parent: Link): { parent: Principal } => ({ parent: principalOf(parent.owner, parent.actor) });

/** Walks from the first row over the others. */
async function walk(first: Link, ...others: Link[]): Promise<string> {
  const rows = new Map(others.map((link) => [`${link.owner}.${link.actor}`, link]));
  try {
    await assertAttenuated(first, async (o, a) => rows.get(`${o}.${a}`));
    return "holds";
  } catch (error) {
    if (!(error instanceof AuthorityError)) throw error;
    expect(error.code).toBe("permission-denied");
    return error.reason?.replace(/^parent \S+: /, "") ?? "";
  }
}

describe("an attenuation walk", () => {
  const mum = row("mum", { scope: ["run", "role:reviewer"], allowSubscribe: ["team.*"], allowPublish: ["team.>"] });
  const child = (more: Partial<Link> = {}) => row("child", { ...childOf(mum), ...more });

  it("ends at a row without parent", async () => {
    expect(await walk(row("person", { scope: ["run"] }))).toBe("holds");
    const full = { scope: ["run"], allowSubscribe: ["team.*"], allowPublish: ["team.a.b"], role: "reviewer" };
    expect(await walk(child(full), mum)).toBe("holds");
  });

  it("denies what the parent does not cover", async () => {
    expect(await walk(child({ scope: ["spawn"] }), mum)).toBe("does not cover scope");
    expect(await walk(child({ allowSubscribe: ["team.>"] }), mum)).toBe("does not cover allowSubscribe");
    expect(await walk(child({ allowPublish: ["other"] }), mum)).toBe("does not cover allowPublish");
    expect(await walk(child({ role: "boss" }), mum)).toBe("does not cover role");
  });

  it("denies a missing, revoked or foreign link", async () => {
    expect(await walk(child())).toBe("no such row");
    expect(await walk(child(), { ...mum, state: "revoked" })).toBe("not active");
    const foreign = { ...mum, owner: other };
    expect(await walk(row("child", childOf(foreign)), foreign)).toBe("another owner");
  });

  it("sees a grandparent that was narrowed", async () => {
    const gran = row("gran", { scope: ["run"] });
    const middle = row("middle", { scope: ["run"], ...childOf(gran) });
    const last = row("last", { scope: ["run"], ...childOf(middle) });
    expect(await walk(last, middle, gran)).toBe("holds");
    expect(await walk(last, middle, { ...gran, scope: [] })).toBe("does not cover scope");
  });

  it("ends at an admin that covers the row below it", async () => {
    const admin = row("boss", { scope: ["admin", "run"], parent: `${owner}.gone` as Principal });
    expect(await walk(row("child", { scope: ["run"], ...childOf(admin) }), admin)).toBe("holds");
    expect(await walk(row("child", { scope: ["spawn"], ...childOf(admin) }), admin)).toBe("does not cover scope");
  });

  it("denies a cycle and more than sixteen hops", async () => {
    const one = row("one", { parent: `${owner}.two` as Principal });
    const two = row("two", childOf(one));
    expect(await walk(one, two, one)).toBe("a cycle");
    const chain = Array.from({ length: 18 }, (_, at) =>
      row(`link${at}`, at < 17 ? { parent: `${owner}.link${at + 1}` as Principal } : {}),
    );
    const [first, second, ...rest] = chain;
    if (!first || !second) throw new Error("no chain");
    expect(await walk(first, second, ...rest)).toBe("too many hops");
    expect(await walk(second, ...rest)).toBe("holds");
  });

  it("passes an unreadable store on, never as absence", async () => {
    const failing = assertAttenuated(child(), async () => {
      throw unavailable("no leader");
    });
    await expect(failing).rejects.toMatchObject({ code: "unavailable" });
  });
});

type Lists = Pick<Link, "scope" | "allowSubscribe" | "allowPublish" | "role">;

const SCOPES = ["spawn", "run", "supervise", "admin", "role:x", "role:y"];
const pattern = fc
  .tuple(fc.array(fc.constantFrom("a", "b", "*"), { maxLength: 3 }), fc.constantFrom("a", "b", "*", ">"))
  .map(([head, last]) => [...head, last].join("."));
const lists: fc.Arbitrary<Lists> = fc
  .record({
    scope: fc.subarray(SCOPES),
    allowSubscribe: fc.array(pattern, { maxLength: 3 }),
    allowPublish: fc.array(pattern, { maxLength: 3 }),
    role: fc.constantFrom("x", "y", undefined),
  })
  .map(({ role, ...rest }) => ({ ...rest, ...(role === undefined ? {} : { role }) }));

/** A pattern within another: a `*` may become a token, a `>` one token or more. */
const narrower = (wide: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      ...wide.split(".").map((token) => {
        if (token === "*") return fc.constantFrom("a", "b", "*");
        return token === ">" ? pattern : fc.constant(token);
      }),
    )
    .map((tokens) => tokens.join("."));

const someOf = (wide: readonly string[]): fc.Arbitrary<string[]> =>
  wide.length === 0
    ? fc.constant([])
    : fc.array(fc.constantFrom(...wide), { maxLength: 4 }).chain((chosen) => fc.tuple(...chosen.map(narrower)));

/** Lists that a parent covers, with a role only where it may give one. */
const within = (parent: Lists): fc.Arbitrary<Lists> => {
  const roles = parent.scope.filter((scope) => scope.startsWith("role:")).map((scope) => scope.slice("role:".length));
  return fc
    .record({
      scope: fc.subarray([...parent.scope]),
      allowSubscribe: someOf(parent.allowSubscribe),
      allowPublish: someOf(parent.allowPublish),
      role: fc.constantFrom(undefined, ...roles),
    })
    .map(({ role, ...rest }) => ({ ...rest, ...(role === undefined ? {} : { role }) }));
};

/** Every subject of one to six tokens over a letter more than the patterns have. */
const subjects: string[] = [];
for (let layer = [""], depth = 0; depth < 6; depth += 1) {
  layer = layer.flatMap((head) => ["a", "b", "z"].map((token) => (head ? `${head}.${token}` : token)));
  subjects.push(...layer);
}

/** As the broker reads a list of patterns, written independently. */
function reading(patterns: readonly string[]): (subject: string) => boolean {
  const sources = patterns.map((one) =>
    one
      .split(".")
      .map((token) => (token === "*" ? "[^.]+" : token === ">" ? ".+" : token))
      .join("\\."),
  );
  const regex = new RegExp(`^(?:${sources.join("|")})$`);
  return (subject) => patterns.length > 0 && regex.test(subject);
}

/** What the one may do and the other may not: scopes, the role, subjects. */
function beyond(child: Lists, parent: Lists): string[] {
  const may = (of: Lists) => [reading(of.allowSubscribe), reading(of.allowPublish)] as const;
  const [childReads, childWrites] = may(child);
  const [parentReads, parentWrites] = may(parent);
  return [
    ...child.scope.filter((scope) => !parent.scope.includes(scope)),
    ...(child.role === undefined || parent.scope.includes(`role:${child.role}`) ? [] : [`role:${child.role}`]),
    ...subjects.filter((subject) => childReads(subject) && !parentReads(subject)),
    ...subjects.filter((subject) => childWrites(subject) && !parentWrites(subject)),
  ];
}

describe("whatever a child may do", () => {
  it("its parent may, if it is covered; and what lies within is covered", () => {
    const pair = lists.chain((parent) => fc.tuple(fc.constant(parent), fc.oneof(within(parent), lists)));
    let covered = 0;
    fc.assert(
      fc.property(pair, ([above, below]) => {
        const parent = row("mum", above);
        if (excessOf(row("child", { ...below, ...childOf(parent) }), parent) !== undefined) return;
        covered += 1;
        expect(beyond(below, above)).toEqual([]);
      }),
      { numRuns: 800 },
    );
    expect(covered).toBeGreaterThan(300);
    const inside = lists.chain((parent) => fc.tuple(fc.constant(parent), within(parent)));
    fc.assert(
      fc.property(inside, ([above, below]) => {
        const parent = row("mum", above);
        expect(excessOf(row("child", { ...below, ...childOf(parent) }), parent)).toBeUndefined();
      }),
      { numRuns: 2_000 },
    );
  });

  it("and it is said which list goes beyond", () => {
    const pair = lists.chain((parent) => fc.tuple(fc.constant(parent), within(parent)));
    const more = fc.oneof(
      fc.constantFrom(...SCOPES).map((scope) => ["scope", { scope: [scope] }] as const),
      pattern.map((one) => ["allowSubscribe", { allowSubscribe: [one] }] as const),
      pattern.map((one) => ["allowPublish", { allowPublish: [one] }] as const),
      fc.constantFrom("x", "y").map((role) => ["role", { role }] as const),
    );
    let refused = 0;
    fc.assert(
      fc.property(pair, more, ([above, inside], [name, extra]) => {
        const parent = row("mum", above);
        const below = { ...inside, ...extra };
        const excess = excessOf(row("child", { ...below, ...childOf(parent) }), parent);
        if (excess === undefined) expect(beyond(below, above)).toEqual([]);
        else expect(excess).toBe(name);
        refused += excess === undefined ? 0 : 1;
      }),
      { numRuns: 1_500 },
    );
    expect(refused).toBeGreaterThan(300);
  });

  it("every ancestor up to an admin may", async () => {
    /** From the eldest down, each within the one above. */
    const family = fc.integer({ min: 2, max: 8 }).chain((length) =>
      Array.from({ length: length - 1 }).reduce<fc.Arbitrary<Lists[]>>(
        (chain) =>
          chain.chain((known) =>
            within(known.at(-1) ?? { scope: [], allowSubscribe: [], allowPublish: [] }).map((next) => [...known, next]),
          ),
        lists.map((eldest) => [eldest]),
      ),
    );
    const change = fc.constantFrom("nothing", "revoked", "narrowed", "gone");
    await fc.assert(
      fc.asyncProperty(family, change, fc.nat(), async (each, what, pick) => {
        const chain = each
          .map((one, at) =>
            row(`link${at}`, { ...one, ...(at > 0 ? { parent: `${owner}.link${at - 1}` as Principal } : {}) }),
          )
          .reverse();
        const [first, ...above] = chain;
        if (!first) throw new Error("no chain");
        const end = above.findIndex((link) => link.scope.includes("admin"));
        const walked = end < 0 ? above : above.slice(0, end + 1);
        expect(await walk(first, ...above)).toBe("holds");
        for (const link of walked) expect(beyond(first, link)).toEqual([]);

        const victim = pick % walked.length;
        const below = victim === 0 ? first : walked[victim - 1];
        const holds =
          below !== undefined && beyond(below, { scope: [], allowSubscribe: [], allowPublish: [] }).length === 0;
        const changed = above.flatMap((link, at) => {
          if (at !== victim || what === "nothing") return [link];
          if (what === "gone") return [];
          if (what === "revoked") return [{ ...link, state: "revoked" as const }];
          return [{ ...link, scope: [], allowSubscribe: [], allowPublish: [] }];
        });
        const answer = await walk(first, ...changed);
        if (what === "nothing") expect(answer).toBe("holds");
        else if (what === "gone") expect(answer).toBe("no such row");
        else if (what === "revoked") expect(answer).toBe("not active");
        else if (!holds) expect(answer).toMatch(/^does not cover/);
      }),
      { numRuns: 150 },
    );
  });
});
