import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { assignmentRows } from "../../../shared/rows/assignment.ts";
import { credRows } from "../../../shared/rows/credential.ts";
import { create } from "../../../shared/store/message.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { freshCredentialId, freshUid, rootCred } from "../../kit/rows.ts";
import { openStore, type TestStore } from "../../kit/store.ts";

let broker: Broker;
let on: TestStore;
beforeAll(async () => {
  broker = await startBroker();
  on = await openStore(broker.url);
});
afterAll(async () => {
  await on.close();
  await broker.stop();
});

describe("the keys under a prefix", () => {
  it("are those of every row there and of no other, readable or not", async () => {
    const [uid, other] = [freshUid(), freshUid()];
    expect(await on.store.keys(credRows, { uid })).toEqual([]);
    const keys: string[] = [];
    for (const lifecycle of [uid, uid, uid, other]) {
      const credentialId = freshCredentialId();
      const key = credRows.key({ uid: lifecycle, credentialId });
      await on.store.commit([create(key, rootCred(lifecycle, { credentialId }))], on.work());
      if (lifecycle === uid) keys.push(key.key);
    }
    await on.put("auth", `cred.${uid}.garbled`, "{}");
    const found = await on.store.keys(credRows, { uid });
    expect(found.map(({ key }) => key).sort()).toEqual([...keys, `cred.${uid}.garbled`].sort());
    const [first] = found.filter(({ key }) => key === keys[0]);
    expect(first && (await on.store.read(first))?.value.lifecycleUid).toBe(uid);
  });

  it("leave out the neighbours under the prefix", async () => {
    await on.put("auth", "assignment.platform", "{}");
    expect(await on.store.keys(assignmentRows, {})).toEqual([]);
  });

  it("are unavailable where there is no stream", async () => {
    const elsewhere = await openStore(broker.url, { space: "elsewhere", streams: [] });
    await expect(elsewhere.store.keys(credRows, {})).rejects.toMatchObject({ code: "unavailable" });
    await elsewhere.close();
  });
});
