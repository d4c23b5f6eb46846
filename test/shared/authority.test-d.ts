/** What the compiler knows of the typed clients; checked by it alone. */
import { expectTypeOf } from "vitest";
import type { Authority } from "../../shared/authority.ts";
import type { CallOptions } from "../../shared/client.ts";
import type { runAttempt } from "../../shared/contracts/auth/runs/run-attempt.ts";
import type { authApi } from "../../shared/contracts/auth.ts";
import type { Input, Output } from "../../shared/contracts/operation.ts";
import type { ErrorCode } from "../../shared/errors.ts";
import type { ManagerHttp } from "../../shared/manager-http.ts";
import type { Failure, Result } from "../../shared/result.ts";

declare const ask: Authority;
declare const overHttp: ManagerHttp;
declare const attempt: Input<typeof runAttempt>;

// One function per operation, typed by its declaration.
expectTypeOf<keyof Authority>().toEqualTypeOf<keyof typeof authApi>();
expectTypeOf(ask.runAttempt).parameters.toEqualTypeOf<[Input<typeof runAttempt>, CallOptions?]>();
expectTypeOf(ask.runAttempt(attempt)).resolves.toEqualTypeOf<Result<Output<typeof runAttempt>>>();

// A refusal is a value with a closed set of codes; data is there only where it was not refused.
const answered = await ask.runAttempt(attempt);
expectTypeOf<Failure["code"]>().toEqualTypeOf<ErrorCode>();
// @ts-expect-error it may have been refused
answered.data;
if (answered.ok) expectTypeOf(answered.data.credentials.driver).toEqualTypeOf<{ jwt: string; exp: number }>();
else expectTypeOf(answered.error).toEqualTypeOf<Failure>();
// @ts-expect-error no such code
if (!answered.ok && answered.error.code === "denied") throw answered;

// What no schema admits, no caller can write.
// @ts-expect-error a member is missing
ask.runRevoke({ ...attempt, kind: "manager-run-revoke" });
// @ts-expect-error another kind of request
ask.managerRenew(attempt);
// @ts-expect-error an epoch is a number
ask.runAttempt({ ...attempt, attempt: { ...attempt.attempt, epoch: "1" } });
// @ts-expect-error no such operation
ask.runStart;

// Over HTTP the same functions, as far as there is a kind of body.
expectTypeOf<Authority>().toExtend<ManagerHttp>();
expectTypeOf(overHttp.runAttempt(attempt)).toEqualTypeOf(ask.runAttempt(attempt));
expectTypeOf(overHttp).toHaveProperty("managerPrepare");
// @ts-expect-error an operator's, on the rail alone
overHttp.actorGrant;
// @ts-expect-error a session ends on its own connection
overHttp.managerSessionEnd;
