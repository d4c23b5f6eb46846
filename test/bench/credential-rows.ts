/** Fills the authority's stream with credential rows of other lifecycles and instances, as an older space has them. */
import { newUid, systemPorts } from "../../shared/ports.ts";
import { credRows, epCredRows } from "../../shared/rows/credential.ts";
import { create, type Message } from "../../shared/store/message.ts";
import { ownWork } from "../../shared/work.ts";
import type { Ground } from "../kit/ground.ts";
import { freshCredentialId, MANAGER, rootCred, serveCred } from "../kit/rows.ts";

const A_DAY_MS = 86_400_000;
/** Rows of one instance or lifecycle. */
const EACH = 50;
const BATCH = 250;

/** Writes so many; half of them are of manager instances. */
export async function fill({ store }: Pick<Ground, "store">, count: number): Promise<void> {
  const messages = rows(count);
  const work = ownWork(systemPorts, 600_000);
  const next = async (): Promise<void> => {
    for (let batch = messages.splice(0, BATCH); batch.length > 0; batch = messages.splice(0, BATCH)) {
      await store.commit(batch, work);
    }
  };
  await Promise.all(Array.from({ length: 8 }, next));
}

function rows(count: number): Message[] {
  const messages: Message[] = [];
  let uid = newUid(systemPorts);
  const exp = systemPorts.now() + A_DAY_MS;
  for (let n = 0; n < count; n += 1) {
    if (n % EACH === 0) uid = newUid(systemPorts);
    const credentialId = freshCredentialId();
    const common = { credentialId, exp };
    if (Math.floor(n / EACH) % 2 === 0) {
      const key = epCredRows.key({ endpoint: MANAGER, instanceId: uid, credentialId });
      messages.push(create(key, serveCred(uid, common)));
    } else {
      messages.push(create(credRows.key({ uid, credentialId }), { ...rootCred(uid), ...common }));
    }
  }
  return messages;
}
