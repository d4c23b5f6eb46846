import { headers, type NatsConnection } from "@nats-io/nats-core";
import { actorGrant } from "../../shared/contracts/auth/actors/actor-grant.ts";
import { AuthorityError, isAuthorityError, textOf } from "../../shared/errors.ts";
import { newRunId } from "../../shared/manager/attempt.ts";
import { newNonce, type Ports } from "../../shared/ports.ts";
import { Actor, Owner, RequestId, type RunId, Scope, type Space } from "../../shared/tokens.ts";
import { post } from "./example/http.ts";
import { type Manager, startManager } from "./example/manager.ts";
import { type Bundle, type Caller, type Connected, Person } from "./example/person.ts";
import { makeJournalStream } from "./journal-stream.ts";
import { type Operator, operatorOf } from "./operator.ts";
import type { Report } from "./report.ts";
import { refusalOf, violationOf, within } from "./witness.ts";

/** Where the parts of the space are. */
export interface TourEnv {
  readonly space: Space;
  readonly stateDir: string;
  /** URL of the broker. */
  readonly servers: string;
  /** URLs of the gateway's faces; the capability of the loopback face stands in the state folder. */
  readonly loopbackUrl: string;
  readonly publicUrl: string;
  /** URL of the development identity provider. */
  readonly idpUrl: string;
  readonly ports: Ports;
}

const CLI = Actor.parse("cli");
const WAIT_MS = 5_000;

/** Runs every step; one that fails ends the tour, since the later ones stand on it. */
export async function runTour(env: TourEnv, report: Report): Promise<{ steps: number; failed: number }> {
  const tour = new Tour(env, report);
  try {
    await tour.run();
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
  } finally {
    await tour.end();
  }
  return { steps: tour.steps, failed: tour.failed };
}

class StepFailed extends Error {}

/** What one step says of itself. */
interface Told {
  readonly result: string;
  readonly on?: string;
}

class Tour {
  steps = 0;
  failed = 0;
  readonly #env: TourEnv;
  readonly #report: Report;
  readonly #open: { close(): Promise<unknown> }[] = [];

  constructor(env: TourEnv, report: Report) {
    this.#env = env;
    this.#report = report;
  }

  async run(): Promise<void> {
    const { ports, space } = this.#env;
    const alice = await this.#personNamed("alice");
    const owner = await this.#step("a login without a grant is refused", () => this.#refusedLogin(alice));
    const operator = await operatorOf(this.#env);
    this.#open.push(operator.connection);
    await this.#step("the operator grants alice supervise, run and spawn", () => this.#grant(operator, owner));
    const agent = await this.#step("alice exchanges her login and connects", () => this.#connect(alice));
    await this.#step("the broker refuses what she may not publish", () => this.#refusedPublish(agent));

    const manager = await this.#step("a manager prepares, registers, activates and serves", () => this.#manage(alice));
    const caller = await this.#step("alice connects as the manager's caller", () => this.#callManager(alice, manager));
    const runId = newRunId(ports);
    const subject = await this.#step("alice asks the manager for a run", () =>
      this.#startRun(alice, caller, manager, runId),
    );
    await this.#step("the authority saw her ask, and admits the run", async () => {
      const { admission } = await manager.admit(runId, subject);
      return { result: `${runId} of ${admission.caller.owner}.${admission.caller.actor}`, on: "auth run-admit" };
    });
    const driver = await this.#step("the run's driver gets credentials and connects", async () => {
      return { value: await manager.attempt(runId), result: "attempt 1", on: "auth run-attempt" };
    });
    await makeJournalStream(this.#env.stateDir, space, this.#env.servers, ports);
    await this.#step("the driver writes its own journal, and no other", () => this.#journal(driver, runId, manager));
    await this.#step("the run is revoked, and its next attempt refused", () => this.#revoke(manager, runId));
    await this.#step("the service's own statistics say so", () => this.#statistics(operator));
  }

  async end(): Promise<void> {
    for (const one of this.#open.reverse()) await one.close().catch(() => {});
  }

  async #step<T>(step: string, act: () => Promise<Told & { value?: T }>): Promise<T> {
    this.steps += 1;
    try {
      const { value, result, on } = await act();
      this.#report.step({ step, ok: true, result, ...(on === undefined ? {} : { on }) });
      return value as T;
    } catch (error) {
      this.failed += 1;
      this.#report.step({
        step,
        ok: false,
        result: isAuthorityError(error) ? `${error.code}: ${error.message}` : textOf(error),
      });
      throw new StepFailed();
    }
  }

  async #personNamed(name: string): Promise<Person> {
    const { idpUrl, publicUrl, ports } = this.#env;
    const bundle = (await (await fetch(`${publicUrl}/.well-known/cotal-mesh`)).json()) as Bundle;
    const login = async () => (await post<{ id_token: string }>(`${idpUrl}/token`, { sub: name })).id_token;
    return new Person(bundle, login, ports);
  }

  /** Alice, or on a state where she has been granted before somebody who never is; alice's owner either way. */
  async #refusedLogin(alice: Person): Promise<Told & { value: Owner }> {
    const on = "POST /exchange";
    const known = await alice.exchange({ actor: CLI }).then(
      ({ owner }) => owner,
      () => undefined,
    );
    const person = known === undefined ? alice : await this.#personNamed("mallory");
    const refusal = await refusalOf(person.exchange({ actor: CLI }), "permission-denied");
    const named = /u_[a-z2-7]{26}/.exec(refusal.message)?.[0];
    const who = known === undefined ? "alice" : "mallory (alice was granted by an earlier tour)";
    return {
      value: Owner.parse(known ?? named),
      result: `403 permission-denied names the owner of ${who}: ${named}`,
      on,
    };
  }

  async #grant({ client }: Operator, owner: Owner): Promise<Told> {
    const { lifecycleUid } = await client.call(actorGrant, {
      requestId: RequestId.parse(newNonce(this.#env.ports)),
      owner,
      actor: CLI,
      scope: ["supervise", "run", "spawn"].map((scope) => Scope.parse(scope)),
      allowSubscribe: [],
      allowPublish: [],
      label: "alice, for the tour",
    });
    return { result: `${owner}.${CLI} lives under uid ${lifecycleUid}`, on: "auth actor-grant" };
  }

  async #connect(alice: Person): Promise<Told & { value: Connected }> {
    const { token, exp } = await alice.exchange({ actor: CLI });
    const connected = await alice.connect(token);
    this.#open.push(connected.connection);
    return {
      value: connected,
      result: `a bearer until ${new Date(exp * 1_000).toISOString()}`,
      on: "POST /exchange, auth callout",
    };
  }

  async #refusedPublish({ connection }: Connected): Promise<Told> {
    const subject = `cotal.${this.#env.space}.ep.one.auth.actor-grant.local.operator.x.y`;
    const refused = await violationOf(connection, () => connection.publish(subject));
    return { result: `permissions violation for ${refused}`, on: subject };
  }

  async #manage(alice: Person): Promise<Told & { value: Manager }> {
    const { space, ports } = this.#env;
    const { server: servers, userAuth } = alice.bundle;
    const login = { url: userAuth.endpoints.managerAuthorityUrl, idpToken: () => alice.idToken() };
    const manager = await startManager({ space, servers, actor: CLI, ports, ...login });
    this.#open.push({ close: () => manager.stop() });
    manager.renewed.catch(() => {}); // the steps would tell
    return { value: manager, result: `instance ${manager.instanceId}`, on: "POST /manager-service-authority" };
  }

  async #callManager(alice: Person, { instanceId }: Manager): Promise<Told & { value: Caller }> {
    const { token } = await alice.exchange({ actor: CLI, view: "manager-caller", managerInstanceId: instanceId });
    const connected = await alice.connect(token);
    this.#open.push(connected.connection);
    const generation = await alice.issuedGeneration(connected);
    return {
      value: { ...connected, generation },
      result: `issued generation ${generation}`,
      on: "view manager-caller",
    };
  }

  /** Published to the manager's own instance; the broker's capture is what the authority will look at. */
  async #startRun(alice: Person, caller: Caller, manager: Manager, runId: RunId): Promise<Told & { value: string }> {
    const { instanceId } = manager;
    const subject = alice.startRun(caller, instanceId, runId);
    const heard = await within(manager.asked.next(), "the manager did not hear the request");
    if (heard.value?.runId !== runId) throw new AuthorityError("internal", "the manager heard another request");
    return { value: subject, result: `${runId} heard by ${instanceId}`, on: subject };
  }

  async #journal(driver: NatsConnection, runId: RunId, manager: Manager): Promise<Told> {
    const { space, ports } = this.#env;
    const first = {
      v: 1,
      kind: "activation",
      run: runId,
      n: 1,
      holder: `tour.${manager.instanceId}`,
      fencingToken: 1,
      epoch: 1,
      replayedTo: 0,
      at: ports.now(),
    };
    const expected = headers();
    expected.set("Nats-Expected-Last-Subject-Sequence", "0");
    const subject = `cotal.${space}.wfj.${runId}`;
    const ack = await driver.request(subject, JSON.stringify(first), { headers: expected, timeout: WAIT_MS });
    const { seq, error } = ack.json<{ seq?: number; error?: { description?: string } }>();
    if (seq === undefined) throw new AuthorityError("internal", `the journal was not written: ${error?.description}`);
    const foreign = `cotal.${space}.wfj.${newRunId(ports)}`;
    await violationOf(driver, () => driver.publish(foreign, "{}"));
    return { result: "first record written, another run's journal refused by the broker", on: subject };
  }

  async #revoke(manager: Manager, runId: RunId): Promise<Told> {
    const { revocation } = await manager.revoke(runId, "the tour is over");
    await refusalOf(manager.attempt(runId), "permission-denied");
    return { result: `by ${revocation.by}; a new attempt is permission-denied`, on: "auth run-revoke" };
  }

  /** Every replica answers for itself; what was asked of the service is their sum. */
  async #statistics({ connection }: Operator): Promise<Told> {
    const sums = new Map<string, Counted>();
    for await (const answer of await connection.requestMany("$SRV.STATS.auth", "", {
      strategy: "stall",
      maxWait: WAIT_MS,
    })) {
      for (const { name, num_requests, num_errors } of answer.json<{ endpoints: Counted[] }>().endpoints) {
        const before = sums.get(name) ?? { name, num_requests: 0, num_errors: 0 };
        sums.set(name, {
          name,
          num_requests: before.num_requests + num_requests,
          num_errors: before.num_errors + num_errors,
        });
      }
    }
    const attempt = sums.get("run-attempt");
    if (!attempt || attempt.num_requests < 2 || attempt.num_errors < 1) {
      throw new AuthorityError("internal", "the statistics do not show the refused attempt");
    }
    const shown = ["run-admit", "run-attempt", "run-revoke"].map((name) => {
      const { num_requests = 0, num_errors = 0 } = sums.get(name) ?? {};
      return `${name} ${num_requests} requests, ${num_errors} errors`;
    });
    return { result: shown.join("; "), on: "$SRV.STATS.auth" };
  }
}

interface Counted {
  readonly name: string;
  readonly num_requests: number;
  readonly num_errors: number;
}
