/** Request subjects: one builder and one dispatcher over the same rules (wire §2). */
import { WIRE } from "./limits.ts";
import { Actor, Command, EndpointLabel, Generation, Nonce, Owner, Space, type Triple, Uid } from "./tokens.ts";

const RAILS = ["one", "all", "inst"] as const;
export type Rail = (typeof RAILS)[number];

/** Mode words, and how many target tokens each brings. Owners can never spell one. */
export const MODE_TARGETS = { self: 0, owner: 1, any: 1, child: 1, ledger: 1, handle: 3, exact: 3 } as const;
export type Mode = keyof typeof MODE_TARGETS;

export interface SubjectTarget {
  readonly owner: Owner;
  /** Present in the modes `handle` and `exact`. */
  readonly actor?: Actor;
  readonly uid?: Uid;
}

export interface RequestSubject {
  readonly space: Space;
  readonly version: "legacy" | "v1";
  readonly rail: Rail;
  readonly endpoint: EndpointLabel;
  /** On rail `inst` only. */
  readonly instanceId?: Uid;
  readonly command: Command;
  readonly mode: Mode | null;
  readonly target?: SubjectTarget;
  readonly caller: Triple;
  /** Issued generation, on v1 only. */
  readonly generation?: Generation;
  readonly nonce: Nonce;
}

const isRail = (token: string | undefined): token is Rail => RAILS.some((rail) => rail === token);
const isMode = (token: string | undefined): token is Mode => token !== undefined && Object.hasOwn(MODE_TARGETS, token);

/** The form of a subject, or `undefined` where it has none. Never throws; arity never selects a form. */
export function parseSubject(subject: string): RequestSubject | undefined {
  if (Buffer.byteLength(subject) > WIRE.maxSubject) return undefined;
  const tokens = subject.split(".");
  let at = 0;
  const next = (): string => tokens[at++] ?? "";
  if (next() !== "cotal") return undefined;
  const space = next();
  if (!Space.is(space) || next() !== "ep") return undefined;
  const v1 = tokens[at] === "v1";
  if (v1) at += 1;
  const rail = next();
  const endpoint = next();
  if (!isRail(rail) || !EndpointLabel.is(endpoint)) return undefined;
  const instanceId = rail === "inst" ? next() : undefined;
  if (instanceId !== undefined && !Uid.is(instanceId)) return undefined;
  const command = next();
  if (!Command.is(command)) return undefined;
  const word = tokens[at];
  const mode = isMode(word) ? word : null;
  if (mode) at += 1;
  const target = mode ? parseTarget(tokens.slice(at, at + MODE_TARGETS[mode])) : undefined;
  if (mode) {
    if (target === null) return undefined;
    at += MODE_TARGETS[mode];
  }
  const [owner, actor, uid] = [next(), next(), next()];
  if (!Owner.is(owner) || !Actor.is(actor) || !Uid.is(uid)) return undefined;
  const generation = v1 ? next() : undefined;
  if (generation !== undefined && !Generation.is(generation)) return undefined;
  const nonce = next();
  if (!Nonce.is(nonce) || at !== tokens.length) return undefined;
  return {
    space,
    version: v1 ? "v1" : "legacy",
    rail,
    endpoint,
    ...(instanceId === undefined ? {} : { instanceId }),
    command,
    mode,
    ...(target ? { target } : {}),
    caller: { owner, actor, uid },
    ...(generation === undefined ? {} : { generation }),
    nonce,
  };
}

/** `undefined` for no target tokens, `null` for malformed ones. */
function parseTarget(tokens: string[]): SubjectTarget | undefined | null {
  if (tokens.length === 0) return undefined;
  const [owner, actor, uid] = tokens;
  if (!Owner.is(owner)) return null;
  if (tokens.length === 1) return { owner };
  return Actor.is(actor) && Uid.is(uid) ? { owner, actor, uid } : null;
}

/** The subject of a request. Throws a `RangeError` where the parts make no form: a bug of the builder's caller. */
export function buildSubject(parts: RequestSubject): string {
  const subject = [
    ...head(parts),
    ...(parts.mode ? [parts.mode] : []),
    ...targetTokens(parts.target),
    parts.caller.owner,
    parts.caller.actor,
    parts.caller.uid,
    ...(parts.generation === undefined ? [] : [parts.generation]),
    parts.nonce,
  ].join(".");
  const back = parseSubject(subject);
  if (!back || (parts.generation !== undefined) !== (parts.version === "v1") || back.mode !== parts.mode) {
    throw new RangeError("these parts make no request subject");
  }
  return subject;
}

function head(parts: RequestSubject): string[] {
  return [
    "cotal",
    parts.space,
    "ep",
    ...(parts.version === "v1" ? ["v1"] : []),
    parts.rail,
    parts.endpoint,
    ...(parts.rail === "inst" ? [parts.instanceId ?? ""] : []),
    parts.command,
  ];
}

function targetTokens(target: SubjectTarget | undefined): string[] {
  if (!target) return [];
  return target.actor === undefined ? [target.owner] : [target.owner, target.actor, target.uid ?? ""];
}

/** The subscription of one command on the class rail. */
export const classSubscription = (space: string, endpoint: string, command: string): string =>
  `cotal.${space}.ep.one.${endpoint}.${command}.>`;

/** The subscription of one command on an instance's own rail. */
export const instanceSubscription = (space: string, endpoint: string, instanceId: string, command: string): string =>
  `cotal.${space}.ep.inst.${endpoint}.${instanceId}.${command}.>`;

/** Where a reply goes when the call named no reply subject (wire §4). */
export function replyRail(
  request: Pick<RequestSubject, "space" | "endpoint" | "caller" | "nonce">,
  responder: { instanceId: string; epoch: number },
): string {
  const { space, endpoint, caller, nonce } = request;
  return [
    `cotal.${space}.ep.reply.${endpoint}.${responder.instanceId}.${responder.epoch}`,
    `${caller.owner}.${caller.actor}.${caller.uid}.${nonce}`,
  ].join(".");
}

/** The subject of a contract artifact. */
export const artifactSubject = (space: string, hex: string): string => `cotal.${space}.epc.${hex}`;
