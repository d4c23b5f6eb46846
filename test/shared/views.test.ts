import { describe, expect, it } from "vitest";
import { bearerCapS, VIEWS, viewRule } from "../../shared/views.ts";

describe("the table of views", () => {
  it("is the one of the chapter", () => {
    const rows = Object.entries(VIEWS).map(([name, { scope = "-", faces, managed, pairing = "-" }]) =>
      [name, scope, faces.join("+") || "none", managed ? "managed" : "person", pairing].join(" "),
    );
    expect(rows).toEqual([
      "manager-caller - public+loopback managed managerInstanceId",
      "session-caller - public+loopback person session",
      "channel-writer admin public+loopback person -",
      "channel-purger admin public+loopback person -",
      "transfer-writer admin public+loopback person transferWriter",
      "admin admin loopback person -",
      "purger admin loopback person -",
      "deployer spawn loopback person -",
      "manager-service supervise none person -",
    ]);
  });

  it("has the profile agent for no view, on both faces, managed or not", () => {
    expect(viewRule(undefined)).toMatchObject({ faces: ["public", "loopback"], managed: true });
    expect(viewRule(undefined).scope).toBeUndefined();
  });

  it("caps bearers at 900 s, transfer writers and managed actors at 300 s", () => {
    expect(bearerCapS(undefined, false)).toBe(900);
    expect(bearerCapS("admin", false)).toBe(900);
    expect(bearerCapS("transfer-writer", false)).toBe(300);
    expect(bearerCapS("manager-caller", true)).toBe(300);
    expect(bearerCapS(undefined, true)).toBe(300);
  });
});
