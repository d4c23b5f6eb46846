import { describe, expect, it } from "vitest";
import { PROFILES } from "../../../shared/credentials/profiles.ts";
import {
  actorsOf,
  authServeActor,
  IDENTITIES,
  instanceEndOpId,
  interactiveRetireOpId,
  isDerivedActor,
  ROLE_NAMES,
  ROLES,
  retireOpId,
  runHolder,
  sourceChain,
} from "../../../shared/credentials/roles.ts";
import { Actor, type RunId, type SessionId, Uid } from "../../../shared/tokens.ts";

const instanceId = Uid.parse("i".repeat(32));
const runId = `run-${"0".repeat(32)}` as RunId;

describe("derived names", () => {
  it("are the vectors of a run", () => {
    expect(runHolder(runId)).toEqual({ actor: "wf_5efa0f059f6f", uid: "6ad424fb5b340bda0c4984e14a" });
  });

  it("are the vectors of operation ids", () => {
    const uid = Uid.parse("a".repeat(26));
    expect(retireOpId(uid)).toBe("b5beb5e4f583874a2f0947bbbd");
    expect(interactiveRetireOpId(uid)).toBe("3db697133b35dc8a7e289dc92c");
    expect(instanceEndOpId(uid)).toBe("88f4140ee15e17d4a6d968c727");
  });

  it("of a manager follow from its instance, in the order of its identities", () => {
    const actors = actorsOf(instanceId);
    expect(Object.keys(actors)).toEqual([...IDENTITIES]);
    expect(Object.values(actors)).toEqual(
      ["manager", "manager_exec", "manager_serve", "manager_goal", "manager_session"].map((p) => `${p}_${instanceId}`),
    );
  });

  it("are actors by form, and recognised as derived; other names are not", () => {
    const derived = [...Object.values(actorsOf(instanceId)), authServeActor(instanceId), runHolder(runId).actor];
    for (const actor of derived) expect([Actor.is(actor), isDerivedActor(actor)]).toEqual([true, true]);
    const others = ["cli", "manager", "manager_", `manager_${"i".repeat(25)}`, `manager_${"I".repeat(26)}`, "wf_5efa"];
    for (const actor of [...others, `xmanager_${instanceId}`, `manager_other_${instanceId}`]) {
      expect(isDerivedActor(actor)).toBe(false);
    }
  });
});

describe("roles", () => {
  it("hold what they follow from, or are internal", () => {
    expect(ROLES.serve.actor({ instanceId })).toBe(`manager_serve_${instanceId}`);
    expect(ROLES.runOperator.actor({ instanceId, actor: Actor.parse("cli") })).toBe("cli");
    expect(() => ROLES.runDriver.actor({ instanceId })).toThrow("internal");
  });

  it("have a profile each, but for the two that are rows alone", () => {
    const without = ROLE_NAMES.filter((role) => ROLES[role].profile === undefined);
    expect(without).toEqual(["root", "sessionHolder"]);
    for (const role of ROLE_NAMES) {
      const { profile } = ROLES[role];
      if (profile) expect(["standing", "one-shot"]).toContain(PROFILES[profile].kind);
    }
  });

  it("live as long as the table says", () => {
    const lives = ROLE_NAMES.map((role) => [role, ROLES[role].lifeS(900)]);
    expect(Object.fromEntries(lives)).toEqual({
      root: 7_776_000,
      sessionHolder: 86_400,
      supervisor: 900,
      executor: 300,
      serve: 900,
      goalWriter: 900,
      sessionLedger: 900,
      sessionServing: 86_400,
      transferReader: 300,
      retirementRequester: 300,
      runDriver: 900,
      runMediator: 900,
      runOperator: 60,
    });
  });

  it("name their source", () => {
    expect(sourceChain("serve")).toEqual(["root"]);
    expect(sourceChain("sessionServing", "s".repeat(22) as SessionId)).toEqual([`session.${"s".repeat(22)}`]);
    expect(() => sourceChain("sessionHolder")).toThrow("internal");
  });

  it("of the serve family are contained by a registration", () => {
    expect(ROLE_NAMES.filter((role) => ROLES[role].serveFamily)).toEqual([
      "serve",
      "goalWriter",
      "sessionLedger",
      "sessionServing",
    ]);
  });
});
