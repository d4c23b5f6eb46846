/** How a manager ends an agent for good: with a credential that can ask for this one retirement and nothing else. */
import type { Authority } from "../authority.ts";
import type { managerRegister } from "../contracts/auth/manager/register.ts";
import type { Output } from "../contracts/operation.ts";
import { createKeyPair } from "../credentials/nkeys.ts";
import { retireOpId } from "../credentials/roles.ts";
import type { Ports } from "../ports.ts";
import { orThrow } from "../result.ts";
import { MANAGER, type Owner, type Triple, UserNkey } from "../tokens.ts";
import type { ManagerIdentity } from "./identity.ts";
import type { StandingCredentials } from "./standing.ts";

export interface Retiring {
  readonly me: ManagerIdentity;
  readonly ask: Authority;
  readonly owner: Owner;
  readonly standing: StandingCredentials;
  /** Its registration. */
  readonly place: Output<typeof managerRegister>;
  readonly ports: Ports;
}

/** Answers when the retirement is confirmed, else throws `unavailable`: then ask again. */
export async function retireAgent({ me, ask, owner, standing, place, ports }: Retiring, agent: Triple) {
  const { instanceId, processEpoch: serveEpoch } = place;
  const key = createKeyPair("user", ports);
  const opId = retireOpId(agent.uid);
  const target = { owner: agent.owner, actor: agent.actor, lifecycleUid: agent.uid };
  const retirement = { id: UserNkey.parse(key.public), target, opId, serveEpoch };
  const registrationProof = me.declaration(owner, []);
  const { credentials } = orThrow(await ask.managerRetire({ ...me.service("retire"), registrationProof, retirement }));
  const connection = await standing.connectOnce("retirement", credentials.retirementRequester, key);
  try {
    const named = { opId, serveEndpoint: MANAGER, serveInstanceId: instanceId, serveEpoch };
    return orThrow(await me.asking(connection, owner, "serve", key).retireLifecycle(named, { target: agent }));
  } finally {
    await connection.close();
  }
}
