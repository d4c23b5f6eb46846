/** A manager: known, registered, certified, renewed, serving; it lets runs in, starts and stops them, retires agents. */
import type { Subscription } from "@nats-io/nats-core";
import { nextAttempt, runIdOf } from "../../../shared/manager/attempt.ts";
import { accountOf, ManagerIdentity } from "../../../shared/manager/identity.ts";
import { Publisher } from "../../../shared/manager/publish.ts";
import { retireAgent } from "../../../shared/manager/retire.ts";
import { StandingCredentials } from "../../../shared/manager/standing.ts";
import { type ManagerHttpOptions, managerHttp } from "../../../shared/manager-http.ts";
import { orThrow } from "../../../shared/result.ts";
import type { Actor, RunId, Space, Triple } from "../../../shared/tokens.ts";
import { CONTRACT_ARTIFACTS as artifacts } from "./contract.ts";

export type Manager = Awaited<ReturnType<typeof startManager>>;
type Options = ManagerHttpOptions & { space: Space; servers: string | string[]; actor: Actor };

export async function startManager({ space, servers, actor, ...http }: Options) {
  const { ports } = http;
  const me = new ManagerIdentity(space, actor, ports);
  const standing = new StandingCredentials({ servers, keys: me.keys, ports });
  return standing.orClose(async () => {
    // Known: five keys that never leave here; over HTTP, since there are no credentials yet, those of two of them.
    const prepared = orThrow(await managerHttp(http).managerPrepare(me.service("prepare")));
    const { owner } = prepared;
    standing.hold(prepared.credentials);
    const ask = me.asking(await standing.connect("supervisor"), owner, "supervisor");

    // Registered: what it serves is published first, and whoever served under this name before is proven gone.
    const publisher = new Publisher(await standing.connect("executor"), space, ports);
    await publisher.contract(owner, me.instanceId, artifacts);
    const place = orThrow(await ask.managerRegister(me.registration()));

    // Certified: credentials to serve with, and the proof that later requests carry. Renewed at 75 % of their life.
    const declared = { registrationProof: me.declaration(owner, artifacts), contractArtifacts: [...artifacts] };
    const active = orThrow(await ask.managerActivate({ ...me.service("activate"), ...declared }));
    await publisher.status(place);
    standing.hold(active.credentials);
    const registered = { account: accountOf(prepared), epoch: place.processEpoch, proof: active.nextRegistrationProof };
    const renewed = standing.renewing(async () => {
      const request = me.proven("manager-service-authority", registered);
      return orThrow(await ask.managerRenewStanding({ ...request, operation: "renewStandingBundle" })).credentials;
    });

    // Serving: a request for a run comes on a subject that says who asked; the authority saw it, too.
    const serving = await standing.connect("serve");
    const requests = serving.subscribe(`cotal.${space}.ep.v1.inst.manager.${me.instanceId}.run-start.>`);
    await serving.flush();

    return {
      instanceId: me.instanceId,
      renewed, // rejects where the authority refuses to renew: this start is over
      asked: asked(requests),
      async admit(runId: RunId, subject: string) {
        const request = me.proven("manager-run-admission", registered);
        return orThrow(await ask.runAdmit({ ...request, run: { runId, subject } }));
      },
      async attempt(runId: RunId) {
        const { keys, attempt } = nextAttempt(runId, ports);
        const { credentials } = orThrow(
          await ask.runAttempt({ ...me.proven("manager-run-attempt", registered), attempt }),
        );
        return standing.connectOnce("driver", credentials.driver, keys.driver);
      },
      async revoke(runId: RunId, reason: string) {
        const request = me.proven("manager-run-revoke", registered);
        return orThrow(await ask.runRevoke({ ...request, revoke: { runId, reason } }));
      },
      retire: (agent: Triple) => retireAgent({ me, ask, owner, standing, place, ports }, agent),
      stop: () => standing.close(),
    };
  });
}

async function* asked(requests: Subscription) {
  for await (const { data, subject } of requests) {
    const runId = runIdOf(data);
    if (runId) yield { runId, subject };
  }
}
