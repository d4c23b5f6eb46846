/** A schema as people read it: one line per member, shared shapes by their name. */
import type { TSchema } from "typebox";
import { canonicalText } from "../../shared/canonical.ts";

/** A schema without its types: what its JSON says. */
interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
}

export interface Name {
  readonly name: string;
  readonly schema: TSchema;
  readonly says: string;
}

export interface Row {
  readonly member: string;
  readonly type: string;
  readonly required: boolean;
}

const code = (text: string): string => `\`${text.replaceAll("|", "\\|")}\``;
const literal = (value: unknown): string => code(JSON.stringify(value));

export class SchemaText {
  readonly #names = new Map<string, readonly Name[]>();

  /** `names`: what to say in place of a schema that equals one of theirs. */
  constructor(names: readonly Name[]) {
    for (const name of names) {
      const key = canonicalText(name.schema);
      this.#names.set(key, [...(this.#names.get(key) ?? []), name]);
    }
  }

  /** The members of an object, those of inner objects after it with their whole path. */
  rows(schema: TSchema): Row[] {
    const plain: Schema = JSON.parse(JSON.stringify(schema));
    return this.#inside(plain, "");
  }

  /** One line for the whole of a schema. */
  line(schema: TSchema): string {
    return this.#type(JSON.parse(JSON.stringify(schema)));
  }

  #inside(schema: Schema, path: string): Row[] {
    if (schema.anyOf) {
      if (!schema.anyOf.some((one) => this.#opens(one))) return [];
      return schema.anyOf.flatMap((one, i) => this.#inside(one, `${path}(${i + 1})`));
    }
    if (schema.items) return this.#opens(schema.items) ? this.#inside(schema.items, `${path}[]`) : [];
    return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
      const member = path === "" ? name : `${path}.${name}`;
      const row = { member, type: this.#type(inner, name), required: schema.required?.includes(name) ?? false };
      return this.#nameOf(inner) === undefined ? [row, ...this.#inside(inner, member)] : [row];
    });
  }

  /** Of several tokens with one grammar the one that the member is called after, else none. */
  #nameOf(schema: Schema, member?: string): string | undefined {
    const [first, ...others] = this.#names.get(canonicalText(schema)) ?? [];
    if (others.length === 0) return first?.says;
    return [first, ...others].find((one) => one?.name === member)?.says;
  }

  /** Whether the members of a schema are told in rows of their own. */
  #opens(schema: Schema): boolean {
    return this.#nameOf(schema) === undefined && (schema.properties !== undefined || schema.anyOf !== undefined);
  }

  #type(schema: Schema, member?: string): string {
    const name = this.#nameOf(schema, member);
    if (name !== undefined) return name;
    if (schema.const !== undefined) return literal(schema.const);
    if (schema.enum) return schema.enum.map(literal).join(" or ");
    if (schema.anyOf) return this.#union(schema.anyOf);
    switch (schema.type) {
      case "array":
        return arrayText(schema, this.#type(schema.items ?? {}));
      case "string":
        return stringText(schema);
      case "integer":
        return (schema.minimum ?? 0) > 0 ? `integer, at least ${schema.minimum}` : "integer";
      case undefined:
        return "any JSON";
      default:
        return schema.type;
    }
  }

  #union(forms: readonly Schema[]): string {
    return forms.some((form) => this.#opens(form))
      ? `one of ${forms.length} forms`
      : `one of: ${forms.map((form) => this.#type(form)).join("; ")}`;
  }
}

function arrayText({ minItems = 0, maxItems, uniqueItems }: Schema, item: string): string {
  if (maxItems === 0) return "empty array";
  const size =
    minItems === maxItems ? `${maxItems}` : minItems > 0 ? `${minItems} to ${maxItems}` : `at most ${maxItems}`;
  return `array of ${item} (${size}${uniqueItems ? ", distinct" : ""})`;
}

function stringText({ pattern, minLength = 0, maxLength }: Schema): string {
  if (pattern !== undefined) return `string ${code(pattern)}`;
  return minLength > 0 ? `string, ${minLength} to ${maxLength} characters` : `string, at most ${maxLength} characters`;
}
