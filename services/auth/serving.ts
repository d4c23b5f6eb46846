/**
 * Serves one incarnation of `auth`: its serve credential, the connection under it, and what follows when that
 * connection ends (wire §8, Superseded). The connection never reconnects by itself.
 */
import type { NatsConnection } from "@nats-io/nats-core";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { authServeActor } from "../../shared/credentials/roles.ts";
import { AuthorityError, isAuthorityError, textOf, unavailable } from "../../shared/errors.ts";
import { LIFE, PEER_WAIT, REGISTRATION } from "../../shared/limits.ts";
import type { User } from "../../shared/nats/connect.ts";
import { jitter } from "../../shared/ports.ts";
import type { Entry } from "../../shared/rows/family.ts";
import type { EpGate } from "../../shared/rows/gate.ts";
import { serviceSpecRows } from "../../shared/rows/service.ts";
import { fenced } from "../../shared/store/message.ts";
import { UserNkey } from "../../shared/tokens.ts";
import { ownWork, type Work } from "../../shared/work.ts";
import { type Served, type ServiceOptions, serveService } from "../host/serve.ts";
import type { EndReason, ServiceDeps } from "../service.ts";
import { AUTH, type AuthContext, LOCAL } from "./context.ts";
import { credential, mint } from "./issue/mint.ts";
import { writeStatus } from "./registration/own.ts";
import { gateKey } from "./registration/registrar.ts";

export interface ServingOptions {
  readonly context: AuthContext;
  readonly deps: Pick<ServiceDeps, "owned" | "ports" | "log" | "version">;
  /** As it was opened by the registration. */
  readonly gate: Entry<EpGate>;
  /** All that serving takes but the connection and the incarnation. */
  readonly service: Omit<ServiceOptions, "connection" | "incarnation">;
}

interface Current {
  readonly connection: NatsConnection;
  readonly served: Served;
}

/** Whether the gate is still the one this incarnation opened. */
type Standing = "ours" | "superseded" | "unread";

export class Serving {
  readonly #options: ServingOptions;
  readonly #stopping = new AbortController();
  #current: Current | undefined;
  #end: (reason: EndReason) => void = () => {};
  /** Settles when this incarnation can serve no more. */
  readonly ended = new Promise<EndReason>((resolve) => {
    this.#end = resolve;
  });

  private constructor(options: ServingOptions) {
    this.#options = options;
  }

  /** Steps 8 to 10. `conflict` where a later start came in between: the ceremony begins again. */
  static async open(options: ServingOptions): Promise<Serving> {
    const serving = new Serving(options);
    serving.#current = await serving.#serve("first");
    void serving.#renew();
    return serving;
  }

  get serving(): boolean {
    return this.#current !== undefined && !this.#current.connection.isClosed();
  }

  drain(): Promise<void> {
    this.#stopping.abort();
    return this.#current?.served.drain() ?? Promise.resolve();
  }

  /** Looks at the gate, as a hint says that it may have moved. */
  async look(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    if ((await this.#standing()) === "superseded") this.#superseded();
  }

  async #serve(time: "first" | "again"): Promise<Current> {
    const { context, deps, gate, service } = this.#options;
    const user = await this.#mint();
    if (time === "first") await this.#announce();
    const { processEpoch: epoch, registrationRevision } = gate.value;
    const connection = await deps.owned.open("serve:auth", {
      name: "auth",
      user: () => user,
      reconnect: false,
      log: deps.log,
    });
    if (this.#stopping.signal.aborted) {
      await connection.close();
      throw unavailable("stopped while it was about to serve");
    }
    const incarnation = { instanceId: context.instanceId, epoch, registrationRevision };
    const served = await serveService({ ...service, connection, incarnation });
    const current = { connection, served };
    void this.#follow(current);
    return current;
  }

  /** Step 8, and the gate once more: gate read, the row fenced on it. A renewal is this and no more. */
  async #mint(): Promise<User> {
    const { context, gate } = this.#options;
    const { instanceId, store, ports } = context;
    const work = ownWork(ports, REGISTRATION.stepMs, this.#stopping.signal);
    // Read anew: a row that was written again with the same bytes has another revision and is still ours.
    const now = await this.#readGate(work);
    if (!now || !this.#isOurs(now)) throw superseded();
    const key = createKeyPair("user", ports);
    const wanted = credential({
      name: "serve",
      role: "serve",
      profile: "service-serve",
      key: UserNkey.parse(key.public),
      holder: { owner: LOCAL, actor: authServeActor(instanceId), uid: instanceId },
      bindings: { instanceId, epoch: gate.value.processEpoch },
    });
    const { row, signed } = mint(context, { endpoint: AUTH, instanceId, gate: gate.value }, wanted, {});
    await store.commit([fenced(row.key, row.value, now)], work);
    const standing = await this.#standing();
    if (standing === "superseded") throw superseded();
    if (standing === "unread") throw unavailable("the gate cannot be read");
    return { jwt: signed.jwt, key };
  }

  /**
   * Step 9: the spec is still the registered one, then the status. Once an incarnation, since others can put in the
   * place of either row what is none; whoever registers writes over that.
   */
  async #announce(): Promise<void> {
    const { context, deps, gate } = this.#options;
    const { instanceId, store, ports } = context;
    const work = ownWork(ports, REGISTRATION.stepMs, this.#stopping.signal);
    const spec = await store.inspect(serviceSpecRows.key({ endpoint: AUTH, instanceId }), work);
    const registered = spec.state === "row" && spec.entry.revision === gate.value.registrationRevision;
    if (!registered) throw superseded();
    await writeStatus(context, gate, deps.version, work);
  }

  #readGate(work?: Work): Promise<Entry<EpGate> | undefined> {
    const { store, instanceId } = this.#options.context;
    return store.read(gateKey({ endpoint: AUTH, instanceId }), work);
  }

  #isOurs({ value: now }: Entry<EpGate>): boolean {
    const { generation, processEpoch } = this.#options.gate.value;
    return now.state === "open" && now.generation === generation && now.processEpoch === processEpoch;
  }

  async #standing(): Promise<Standing> {
    try {
      const now = await this.#readGate();
      return now && this.#isOurs(now) ? "ours" : "superseded";
    } catch (error) {
      if (!isAuthorityError(error)) throw error;
      this.#options.deps.log.warn({ err: error.reason ?? error.message }, "the gate cannot be read");
      return "unread";
    }
  }

  /** A connection that ended: serve again where the gate is still ours, end where it is not. */
  async #follow(current: Current): Promise<void> {
    const { log } = this.#options.deps;
    void current.served.stopped.then((error) => {
      if (error && !current.connection.isClosed() && current === this.#current) this.#end("subscription-lost");
    });
    await current.connection.closed();
    if (current !== this.#current || this.#stopping.signal.aborted) return;
    this.#current = undefined;
    log.warn("the serve connection ended");
    await this.#again();
  }

  async #again(): Promise<void> {
    const { ports, log } = this.#options.deps;
    const { signal } = this.#stopping;
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        const standing = await this.#standing();
        if (standing === "superseded") return this.#superseded();
        if (standing === "ours") {
          await this.#handOver(await this.#serve("again"));
          return;
        }
      } catch (error) {
        if (isAuthorityError(error, "conflict")) return this.#superseded();
        log.warn({ err: textOf(error) }, "not serving again yet");
      }
      await ports.sleep(jitter(ports, PEER_WAIT, tries), signal).catch(() => {});
    }
  }

  /** At three quarters of its life the next credential serves and the former drains; its row lapses. */
  async #renew(): Promise<void> {
    const { context, deps } = this.#options;
    const { signal } = this.#stopping;
    const everyMs = context.standingTtlS * 1_000 * LIFE.renewAt;
    for (let wait = everyMs, tries = 0; ; ) {
      await deps.ports.sleep(wait, signal).catch(() => {});
      if (signal.aborted) return;
      [wait, tries] = [everyMs, 0];
      if (!this.#current) continue; // it is being served again, under a credential of its own
      try {
        await this.#handOver(await this.#serve("again"));
      } catch (error) {
        if (isAuthorityError(error, "conflict")) return this.#superseded();
        deps.log.warn({ err: textOf(error) }, "the serve credential was not renewed");
        wait = jitter(deps.ports, PEER_WAIT, tries);
        tries += 1;
      }
    }
  }

  /** The next one serves, whichever served until now; that one drains. */
  async #handOver(next: Current): Promise<void> {
    const former = this.#current;
    this.#current = next;
    if (!former) return;
    await former.served.drain();
    await former.connection.close();
  }

  #superseded(): void {
    if (this.#stopping.signal.aborted) return;
    this.#options.deps.log.error("a later start of this instance serves now");
    this.#end("superseded");
  }
}

const superseded = (): AuthorityError => new AuthorityError("conflict", "a later start has registered");
