/** Obligations of a retiring lifecycle, and the facts that settle them, written as the mesh writes them. */
import type { Retiring } from "../../../../services/auth/barrier/retirement.ts";
import { retireOpId } from "../../../../shared/credentials/roles.ts";
import { decisionFacts, effectFacts, goalFacts, poolFacts } from "../../../../shared/rows/mesh/facts.ts";
import { type FactObligation, type Obligation, obligationRows } from "../../../../shared/rows/mesh/obligation.ts";
import {
  Actor,
  type Command,
  Digest,
  EndpointLabel,
  EnvelopeId,
  Owner,
  principalOf,
} from "../../../../shared/tokens.ts";
import { freshUid, MANAGER } from "../../../kit/rows.ts";
import type { TestStore } from "../../../kit/store.ts";

export const TARGET_OWNER = Owner.parse(`u_${"t".repeat(26)}`);
export const CALLER_OWNER = Owner.parse(`u_${"c".repeat(26)}`);
const FINGERPRINT = Digest.parse(`sha256:${"f".repeat(64)}`);
export const OTHER = Digest.parse(`sha256:${"0".repeat(64)}`);

export const retiring = (): Retiring => {
  const uid = freshUid();
  return { owner: TARGET_OWNER, actor: Actor.parse("coder"), uid, opId: retireOpId(uid), interactive: false };
};

let requests = 0;

/** One request that somebody made of an endpoint, about the retiring target. */
export class Asked {
  readonly endpoint = EndpointLabel.parse(MANAGER);
  readonly owner = CALLER_OWNER;
  readonly actor = Actor.parse("cli");
  readonly uid = freshUid();
  readonly id: EnvelopeId;
  readonly goalId: EnvelopeId;
  readonly sourceSeq = 7;
  readonly #store: TestStore;
  readonly #target: Retiring;

  constructor(store: TestStore, target: Retiring) {
    requests += 1;
    this.id = EnvelopeId.parse(`request-${requests}`);
    this.goalId = EnvelopeId.parse(`goal-${requests}`);
    this.#store = store;
    this.#target = target;
  }

  get key() {
    const { endpoint, owner, actor, uid, id } = this;
    return obligationRows.key({ target: this.#target.uid, endpoint, owner, actor, uid, id });
  }

  epf(more: Partial<FactObligation>): FactObligation {
    return {
      state: "provisional",
      opId: this.#target.opId,
      decision: "epf",
      fingerprint: FINGERPRINT,
      sourceSeq: this.sourceSeq,
      route: "effects",
      mappingRevision: 1,
      ...more,
    };
  }

  /** What an obligation is about, as every fact repeats it. */
  fact(more: object = {}): object {
    const { id, owner, actor, uid, sourceSeq } = this;
    const caller = { id: principalOf(owner, actor), lifecycleUid: uid };
    return { v: 1, id, fingerprint: FINGERPRINT, caller, sourceSeq, ts: 1, ...more };
  }

  accepted(more: object = {}): object {
    return this.fact({
      decision: "accepted",
      request: { goalId: this.goalId },
      contractDigests: { input: OTHER, output: OTHER },
      authzDecision: { revision: 1, epoch: 0 },
      route: "effects",
      ...more,
    });
  }

  oblige(value: Obligation): Promise<number> {
    return this.#store.put("records", this.key.key, JSON.stringify(value));
  }

  decided(body: object): Promise<number> {
    return this.#fact(decisionFacts.key({ ...this.#of(), id: this.id }).key, body);
  }

  effected(body: object, headers?: Record<string, string>): Promise<number> {
    return this.#fact(effectFacts.key({ ...this.#of(), id: this.id }).key, body, headers);
  }

  pooled(pool: string, body: object): Promise<number> {
    return this.#fact(poolFacts.key({ ...this.#of(), pool: pool as Command, id: this.id }).key, body);
  }

  resulted(body: object): Promise<number> {
    return this.#fact(goalFacts.key({ ...this.#of(), goalId: this.goalId }).key, body);
  }

  async row(): Promise<Obligation | undefined> {
    return (await this.#store.store.read(this.key))?.value;
  }

  async decision() {
    return (await this.#store.store.read(decisionFacts.key({ ...this.#of(), id: this.id })))?.value;
  }

  #of() {
    const { endpoint, owner, actor, uid } = this;
    return { endpoint, owner, actor, uid };
  }

  #fact(key: string, body: object, headers?: Record<string, string>): Promise<number> {
    return this.#store.put("facts", key, JSON.stringify(body), headers);
  }
}

/** The mesh's stream of facts, which nobody of ours makes. */
export async function makeFacts({ api, space }: TestStore): Promise<void> {
  await api(`STREAM.CREATE.EPF_${space}`, {
    name: `EPF_${space}`,
    subjects: [`cotal.${space}.epf.>`],
    storage: "file",
    discard: "new",
    discard_new_per_subject: true,
    max_msgs_per_subject: 1,
  });
}
