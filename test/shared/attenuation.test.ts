import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assertAttenuated, excessOf, type Link } from "../../shared/attenuation.ts";
import { AuthorityError, unavailable } from "../../shared/errors.ts";
import { matches } from "../../shared/patterns.ts";
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

describe("whatever a child may do", () => {
  const token = fc.constantFrom("a", "b", "*");
  const pattern = fc
    .tuple(fc.array(token, { minLength: 1, maxLength: 3 }), fc.boolean())
    .map(([tokens, open]) => [...tokens, ...(open ? [">"] : [])].join("."));
  const lists = fc.record({
    scope: fc.subarray(["spawn", "run", "supervise", "admin", "role:x", "role:y"]),
    allowSubscribe: fc.array(pattern, { maxLength: 3 }),
    allowPublish: fc.array(pattern, { maxLength: 3 }),
    role: fc.constantFrom("x", "y", undefined),
  });
  const subject = fc.array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 5 }).map((tokens) => tokens.join("."));

  it("its parent may", () => {
    let covered = 0;
    fc.assert(
      fc.property(lists, lists, fc.array(subject, { minLength: 20, maxLength: 20 }), (below, above, subjects) => {
        const { role: childRole, ...childLists } = below;
        const { role: _, ...parentLists } = above;
        const parent = row("mum", parentLists);
        const child = row("child", { ...childLists, ...(childRole ? { role: childRole } : {}), ...childOf(parent) });
        if (excessOf(child, parent) !== undefined) return;
        covered += 1;
        for (const scope of child.scope) expect(parent.scope).toContain(scope);
        if (child.role) expect(parent.scope).toContain(`role:${child.role}`);
        const may = (patterns: readonly string[], text: string) => patterns.some((wide) => matches(wide, text));
        for (const text of subjects) {
          if (may(child.allowPublish, text)) expect(may(parent.allowPublish, text)).toBe(true);
          if (may(child.allowSubscribe, text)) expect(may(parent.allowSubscribe, text)).toBe(true);
        }
      }),
      { numRuns: 5_000 },
    );
    expect(covered).toBeGreaterThan(20);
  });

  it("every ancestor of the walk may", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(lists, { minLength: 2, maxLength: 4 }), subject, async (each, text) => {
        const chain = each.map(({ role: _, ...more }, at) =>
          row(`link${at}`, {
            ...more,
            ...(at + 1 < each.length ? { parent: `${owner}.link${at + 1}` as Principal } : {}),
          }),
        );
        const [first, ...others] = chain;
        if (!first || (await walk(first, ...others)) !== "holds") return;
        const end = others.findIndex((link) => link.scope.includes("admin"));
        const walked = end < 0 ? others : others.slice(0, end + 1);
        for (const link of walked) {
          for (const scope of first.scope) expect(link.scope).toContain(scope);
          if (first.allowPublish.some((wide) => matches(wide, text))) {
            expect(link.allowPublish.some((wide) => matches(wide, text))).toBe(true);
          }
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
