/**
 * A row family is one value: where its rows are, how a key is built and taken apart, what a value may contain, how
 * long it lives and where it may go (state §3). No handler spells a key.
 *
 *     const key = credRows.key({ uid, credentialId });
 *     const entry = await store.read(key, work);
 */
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { type Json, parseStrict } from "../canonical.ts";
import { type AuthorityError, internal, isAuthorityError } from "../errors.ts";
import { WIRE } from "../limits.ts";
import type { AnyStream } from "../store/streams.ts";

/** What the store needs of a family: everything but how its keys are named. */
export interface Family<V> {
  readonly stream: AnyStream;
  /** The checked value of a row, or `undefined` where it is none; never throws. */
  decode(key: string, body: Uint8Array): V | undefined;
  /** Whole seconds that a row with this value lives, `undefined` for ever. */
  lifetime(value: V, now: number): number | undefined;
  /** Whether a row may go from one value to the other; `from` is `undefined` before a row exists. */
  admits(from: V | undefined, to: V): boolean;
  /** The refusal of a decision that meets an unreadable row. */
  refusal(key: string, fault: RowFault): AuthorityError;
}

/** Why a stored message is no row: a deletion on somebody's part, or not the JSON of its kind. */
export type RowFault = "marker" | "garbled";

/** The address of one row. */
export interface Key<V> {
  readonly stream: AnyStream;
  readonly family: Family<V>;
  /** The KV key, or what stands after the stream's prefix. */
  readonly key: string;
}

/** A row that was read: its value and the sequence of its last message. */
export interface Entry<V> {
  readonly key: Key<V>;
  readonly value: V;
  readonly revision: number;
}

/** A family together with the names of its keys. */
export interface RowFamily<V, P> extends Family<V> {
  key(parts: P): Key<V>;
  /** The variable parts of a key of this family. */
  parts(key: string): P | undefined;
  /** The key that a text is, if it is one of this family. */
  keyOf(text: string): Key<V> | undefined;
  /** A filter over all keys that begin with these parts: it ends in `>`, or is the key where all are given. */
  under(parts: Partial<P>): string;
  /** Whether a key under such a filter is another family's. */
  passes(key: string): boolean;
}

/** Whatever tells one token of a key. */
interface Part<T extends string> {
  is(value: unknown): value is T;
}
type KeyParts = Record<string, Part<string>>;
type Parts<T extends KeyParts> = { readonly [N in keyof T]: T[N] extends Part<infer S> ? S : never };

interface Declaration<S extends TSchema, T extends KeyParts> {
  readonly stream: AnyStream;
  /** Tokens of the key, a variable one in braces: `cred.{uid}.{credentialId}`. */
  readonly pattern: string;
  readonly parts: T;
  readonly schema: S;
  /** What a schema cannot say: value and key name one row, members stand together. */
  agrees?(value: Static<S>, parts: Parts<T>): boolean;
  lifetime?(value: Static<S>, now: number): number | undefined;
  admits?(from: Static<S> | undefined, to: Static<S>): boolean;
  refusal?(key: string, fault: RowFault): AuthorityError;
  /** Keys of other families under the same prefix. */
  passes?(key: string): boolean;
}

export function family<S extends TSchema, T extends KeyParts>(
  declared: Declaration<S, T>,
): RowFamily<Static<S>, Parts<T>> {
  const { stream, pattern, schema } = declared;
  const check = Compile(schema);
  const tokens = pattern.split(".").map((text) => ({ text, part: /^\{(\w+)\}$/.exec(text)?.[1] }));

  const parts = (key: string): Parts<T> | undefined => {
    const given = key.split(".");
    if (given.length !== tokens.length) return undefined;
    const found: Record<string, string> = {};
    for (const [index, { text, part }] of tokens.entries()) {
      const value = given[index];
      if (part === undefined ? value !== text : !declared.parts[part]?.is(value)) return undefined;
      if (part !== undefined && value !== undefined) found[part] = value;
    }
    return found as Parts<T>;
  };

  const self: RowFamily<Static<S>, Parts<T>> = {
    stream,
    key(given) {
      const key = tokens.map(({ text, part }) => (part === undefined ? text : String(given[part]))).join(".");
      if (parts(key) === undefined) throw internal(`no key ${pattern}: a part is malformed`);
      return { stream, family: self, key };
    },
    parts,
    keyOf: (text) => (parts(text) === undefined ? undefined : { stream, family: self, key: text }),
    under(given) {
      const first = tokens.findIndex(({ part }) => part !== undefined && given[part] === undefined);
      const fixed = first < 0 ? tokens : tokens.slice(0, first);
      for (const { part } of fixed) {
        if (part !== undefined && !declared.parts[part]?.is(given[part])) throw internal(`no prefix of ${pattern}`);
      }
      const texts = fixed.map(({ text, part }) => (part === undefined ? text : String(given[part])));
      return [...texts, ...(first < 0 ? [] : [">"])].join(".");
    },
    passes: (key) => declared.passes?.(key) ?? false,
    decode(key, body) {
      const named = parts(key);
      const value = jsonIn(body);
      if (named === undefined || !isObject(value) || !check.Check(value)) return undefined;
      return (declared.agrees?.(value, named) ?? true) ? value : undefined;
    },
    lifetime: (value, now) => declared.lifetime?.(value, now),
    admits: (from, to) => declared.admits?.(from, to) ?? true,
    refusal: (key, fault) => declared.refusal?.(key, fault) ?? internal(`unreadable row ${key}: ${fault}`),
  };
  return self;
}

/** JSON as a peer may have garbled it: `undefined` where it is none (records §1). */
export function jsonIn(body: Uint8Array, maxBytes: number = WIRE.maxBody): Json | undefined {
  try {
    return parseStrict(body, { maxBytes, maxDepth: WIRE.maxDepth });
  } catch (error) {
    if (isAuthorityError(error)) return undefined;
    throw error;
  }
}

const isObject = (value: Json | undefined): value is { [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whole seconds until `at`, rounded up; at least one, as what is over must still be written. */
export const secondsUntil = (at: number, now: number): number => Math.max(1, Math.ceil((at - now) / 1_000));
