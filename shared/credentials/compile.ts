/**
 * Turns a row of the matrix into what the broker enforces.
 *
 * ```ts
 * const permissions = compilePermissions("run-driver", { space, owner, actor, uid, inbox: key, runId, takeoverId });
 * ```
 */
import { internal } from "../errors.ts";
import { ANSWER, WIRE } from "../limits.ts";
import { isPattern } from "../patterns.ts";
import type { Permissions, SubjectRules } from "./jwt.ts";
import type { Holder, Subjects } from "./profiles/profile.ts";
import { type Bindings, PROFILES, type ProfileName } from "./profiles.ts";

/** Deduplicated and sorted: equal bindings give equal bytes. Unusable bindings are `internal`. */
export function compilePermissions<N extends ProfileName>(name: N, bindings: Bindings<N> & Holder): Permissions {
  const rows = PROFILES[name].rows(bindings);
  const publish = flat(rows.publish);
  if (publish.some(touchesJetStream)) publish.push("$JS.API.INFO");
  const subscribe = [`_INBOX_${bindings.inbox}.>`, ...flat(rows.subscribe ?? [])];
  const permissions: Permissions = {
    pub: rules(publish, flat(rows.denyPublish ?? [])),
    sub: rules(subscribe, []),
    ...(rows.answers ? { resp: { max: ANSWER.perRequest, ttl: ANSWER.withinS * 1e9 } } : {}),
  };
  for (const text of [...permissions.pub.allow, ...permissions.pub.deny]) assertSubject(name, text);
  for (const text of permissions.sub.allow) assertSubscription(name, text);
  return permissions;
}

/** To the broker an empty list would allow everything. */
const rules = (allow: string[], deny: string[]): SubjectRules =>
  allow.length === 0 ? { allow: [], deny: [">"] } : { allow: ordered(allow), deny: ordered(deny) };

function flat(subjects: Subjects, into: string[] = []): string[] {
  if (typeof subjects === "string") into.push(subjects);
  else for (const part of subjects) flat(part, into);
  return into;
}
const ordered = (list: string[]): string[] => [...new Set(list)].sort();

const touchesJetStream = (subject: string): boolean => /^\$(?:JS|KV|O)\./.test(subject);

function assertSubject(profile: string, text: string): void {
  if (!isPattern(text) || Buffer.byteLength(text) > WIRE.maxSubject) throw internal(`${profile}: no subject: ${text}`);
}

function assertSubscription(profile: string, text: string): void {
  const [subject = "", queue, ...rest] = text.split(" ");
  assertSubject(profile, subject);
  if (rest.length > 0 || (queue !== undefined && !/^[A-Za-z0-9_-]+$/.test(queue))) {
    throw internal(`${profile}: no subscription: ${text}`);
  }
}
