/**
 * A whole real space in the test's own process: broker, state, streams, and whichever services are asked for.
 *
 * ```ts
 * const space = await startSpace({ services: SERVICES });
 * const alice = await space.person("alice", { scope: ["supervise", "run"] });
 * const manager = await space.manager(alice);          // prepared, published, registered, activated, serving
 * const caller = await alice.callerOf(manager);        // connected through the callout, under issued authority
 * await unchanged(space, "conflict", () => manager.client.call(runAttempt, args, { once: true }));
 * await space.stop();
 * ```
 *
 * One space serves a whole test file: each test takes people and managers of its own.
 */
import type { HostedService, ServiceDeps } from "../../services/service.ts";
import { AuthorityClient } from "../../shared/client.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { SelfSigned } from "../../shared/credentials/self-signed.ts";
import { provisionedUser } from "../../shared/credentials/users.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { loadCreds, loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { type AccountNkey, Actor, Owner, type Triple } from "../../shared/tokens.ts";
import { type Ground, type GroundOptions, startGround } from "./ground.ts";
import { type DepsChange, depsOf, type Host, startHost } from "./hosting.ts";
import { pin } from "./logins.ts";
import { type ManagerOptions, startManager, type TestManager } from "./manager.ts";
import { grantPerson, type Person, type PersonOptions } from "./person.ts";

/** Users of the space account through whom a test asks for operations. */
type Caller = "gateway_public" | "gateway_loopback" | "operator" | "platform_host";

export interface TestSpace extends Ground {
  /** One per replica; the first has slot `1` of `auth`. */
  readonly hosts: readonly Host[];
  /** As `local.operator`. */
  readonly operator: AuthorityClient;
  /** As `local.gateway_loopback`: with the option `auth` a person's request, as the gateway forwards it. */
  readonly gateway: AuthorityClient;
  /** What a service is started with; log lines go to `lines`. */
  deps(service: HostedService, more?: DepsChange): Promise<ServiceDeps>;
  /** Further services, as another process has them. Stopped with the space. */
  host(names: readonly HostedService[], change?: (service: HostedService) => DepsChange): Promise<Host>;
  /** As a provisioned user. */
  client(name: Caller): Promise<AuthorityClient>;
  /** The triple of a provisioned user. */
  provisioned(name: Caller): Promise<Triple>;
  /** As anybody, on a connection that may publish under any triple: what the broker would refuse is tried, too. */
  clientAs(caller: Triple): AuthorityClient;
  dataAccount(): Promise<AccountNkey>;
  /** As `local.auth`, on a user like the one that it signs for itself. */
  authClient(): Promise<AuthorityClient>;
  /** Somebody who can log in, granted an actor by the operator. Needs `auth` and `exchange`. */
  person(name: string, options?: PersonOptions): Promise<Person>;
  /** A manager of that person's. Without `upTo` all the way to serving. Needs `auth`. */
  manager(person: Person, options?: ManagerOptions): Promise<TestManager>;
}

export interface SpaceOptions extends GroundOptions {
  readonly services?: readonly HostedService[];
  /** So many hosts with the same services, each with its own slot of `auth`. */
  readonly replicas?: number;
  /** Differences in what services are started with, by host from 0. */
  readonly change?: (service: HostedService, host: number) => DepsChange;
}

export async function startSpace(options: SpaceOptions = {}): Promise<TestSpace> {
  const { services = [], replicas = 1, change = () => ({}), ...init } = options;
  const ports = systemPorts;
  const ground = await startGround({ pins: [pin], ...init });
  const { space, secrets, roots, enter } = ground;
  const hosts: Host[] = [];
  const further: Host[] = [];
  const separate: ServiceDeps[] = [];

  const provisioned = async (name: Caller): Promise<Triple> => {
    const { seed } = await loadCreds(secrets, space, name);
    const { owner, actor, uid } = provisionedUser(space, name, keyPairFromSeed(seed).public);
    return { owner, actor, uid };
  };
  const clientOf = async (name: Caller): Promise<AuthorityClient> => {
    const creds = await loadCreds(secrets, space, name);
    const key = keyPairFromSeed(creds.seed);
    const caller = await provisioned(name);
    const connection = await enter(name, { jwt: creds.jwt, key });
    return new AuthorityClient({ connection, space, caller, inboxPrefix: `_INBOX_${key.public}`, name, ports });
  };
  const stop = async (): Promise<void> => {
    await Promise.all([...hosts, ...further].map((host) => host.stop()));
    await Promise.all(separate.flatMap(({ owned }) => owned.closeSteps("").map(({ run }) => run())));
    await ground.stop();
  };

  try {
    const names = services;
    for (const at of Array.from({ length: names.length === 0 ? 0 : replicas }, (_, index) => index)) {
      hosts.push(await startHost(ground, names, (name) => ({ instance: String(at + 1), ...change(name, at) })));
    }
    const [operator, gateway] = await Promise.all([clientOf("operator"), clientOf("gateway_loopback")]);
    const self: TestSpace = {
      ...ground,
      hosts,
      operator,
      gateway,
      async deps(service, more) {
        const deps = await depsOf(ground, service, more);
        separate.push(deps);
        return deps;
      },
      async host(wanted, differs) {
        const host = await startHost(ground, wanted, differs);
        further.push(host);
        return host;
      },
      client: clientOf,
      provisioned,
      clientAs: (caller) =>
        new AuthorityClient({
          connection: roots.space,
          space,
          caller,
          inboxPrefix: "_INBOX",
          name: "test",
          ports,
        }),
      dataAccount: async () => (await loadSecret(secrets, space, SECRET.serviceKeys)).dataAccount.pub,
      async authClient() {
        const uid = newUid(ports);
        const { pub: account, signingSeed } = (await loadSecret(secrets, space, SECRET.serviceKeys)).dataAccount;
        const signer = keyPairFromSeed(signingSeed);
        const user = new SelfSigned({ space, service: "auth", uid, profile: "work", account, signer, ports }).user();
        const connection = await enter("auth", user);
        const caller = { owner: Owner.parse("local"), actor: Actor.parse("auth"), uid };
        const inboxPrefix = `_INBOX_${user.key.public}`;
        return new AuthorityClient({ connection, space, caller, inboxPrefix, name: "auth", ports });
      },
      person: (name, of) => grantPerson(self, name, of),
      manager: (person, of) => startManager(self, person, of),
      stop,
    };
    return self;
  } catch (error) {
    await stop();
    throw error;
  }
}
