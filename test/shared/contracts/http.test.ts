import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { operationOfHttp } from "../../../shared/contracts/http.ts";
import { isAuthorityError } from "../../../shared/errors.ts";
import { everyOperation, named } from "./every-operation.ts";

const codeOf = (request: unknown): string => {
  try {
    return operationOfHttp(request).name;
  } catch (error) {
    return isAuthorityError(error) ? error.code : "thrown";
  }
};

describe("the gateway map", () => {
  it.each(named.filter(([, operation]) => operation.http !== undefined))(
    "leads the example of %s to it",
    (_, given) => {
      expect(operationOfHttp(given.example)).toBe(given);
    },
  );

  it("tells the two run attempts apart by the member that is there", () => {
    const kind = "manager-run-attempt";
    expect(codeOf({ kind, attempt: {} })).toBe("run-attempt");
    expect(codeOf({ kind, operator: null })).toBe("run-operator");
    expect(codeOf({ kind, attempt: {}, operator: {} })).toBe("bad-request");
    expect(codeOf({ kind })).toBe("bad-request");
  });

  it.each(["delegated-user-intent", "manager-delegated-user-intent-execution"])("answers %s unimplemented", (kind) => {
    expect(codeOf({ kind })).toBe("unimplemented");
  });

  it("refuses both doors and everything else", () => {
    for (const { name, example } of everyOperation.filter(({ http }) => http === undefined)) {
      expect(codeOf(example), name).toBe("bad-request");
    }
    for (const kind of ["platform-control-authority", "platform-supervisor-authority", "__proto__", "constructor", 7]) {
      expect(codeOf({ kind })).toBe("bad-request");
    }
    expect(codeOf({ kind: "manager-service-authority" })).toBe("bad-request");
    expect(codeOf({ kind: "manager-service-authority", operation: "toString" })).toBe("bad-request");
    expect(codeOf({ kind: "manager-service-maintenance", operation: "prepare" })).toBe("bad-request");
    for (const request of [null, undefined, [], "prepare", 1]) expect(codeOf(request)).toBe("bad-request");
  });

  it("never takes a member that was inherited", () => {
    const request = Object.create({ kind: "manager-run-admission" });
    expect(codeOf(request)).toBe("bad-request");
  });

  it("answers any JSON with an operation or one of two codes", () => {
    const kinds = fc.constantFrom(...everyOperation.flatMap(({ http }) => http?.kind ?? []), "delegated-user-intent");
    const request = fc.oneof(
      fc.jsonValue(),
      fc.record({ kind: kinds, operation: fc.jsonValue(), attempt: fc.jsonValue() }, { requiredKeys: ["kind"] }),
    );
    const names = new Set([...everyOperation.map(({ name }) => name), "bad-request", "unimplemented"]);
    fc.assert(fc.property(request, (one) => names.has(codeOf(one))));
  });
});
