/** An agent from its enrollment to the end of its authority, over every service that has a say in it (lifecycles §7). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { sha256Hex } from "../../../../shared/canonical.ts";
import { agentEnroll } from "../../../../shared/contracts/auth/agents/enroll.ts";
import { agentPrepareRetirement } from "../../../../shared/contracts/auth/agents/prepare-retirement.ts";
import { exchangeAgent } from "../../../../shared/contracts/exchange/exchange-agent.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { keyPairFromSeed } from "../../../../shared/credentials/nkeys.ts";
import { retireOpId } from "../../../../shared/credentials/roles.ts";
import { connectUser } from "../../../../shared/nats/connect.ts";
import { newNonce, systemPorts } from "../../../../shared/ports.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { makeMailboxes } from "../mailboxes.ts";
import { proven, type Scene, startScene } from "../scene.ts";

const gateway = { loopbackPort: 7_777, publicPort: 7_778, publicUrl: "https://authority.example" };

let scene: Scene;
beforeAll(async () => {
  scene = await startScene(
    { services: ["auth", "exchange", "callout"], settings: { gateway } },
    { scope: ["supervise"], allowSubscribe: ["team.>"], allowPublish: ["team.>"] },
  );
  await makeMailboxes(scene.space);
});
afterAll(() => scene.space.stop());

it("enrolls, exchanges its secret, connects, and is denied everything once its retirement is prepared", async () => {
  const { space, manager } = scene;
  const actorToken = Buffer.from(systemPorts.random(32)).toString("base64url");
  const target = {
    actor: "coder",
    tokenHash: sha256Hex(actorToken),
    subscribe: ["team.build"],
    allowSubscribe: ["team.build"],
    allowPublish: ["team.build"],
  };
  const enrolling = { ...proven(manager, "manager-managed-agent-enrollment"), target };
  const { material } = await manager.client.call(agentEnroll, enrolling as Input<typeof agentEnroll>);
  const { owner, actor, lifecycleUid } = material;

  const exchange = async (): Promise<string> =>
    (await space.gateway.call(exchangeAgent, { owner, actor, actorToken }, { once: true })).token;
  const connect = async (token: string) => {
    const sentinel = await space.files.sentinel();
    expect(material.sentinelCreds).toBe(sentinel.text);
    const name = newNonce(systemPorts);
    const user = { jwt: sentinel.jwt, key: keyPairFromSeed(sentinel.seed) };
    const inboxPrefix = `_INBOX_${name}`;
    return connectUser({ servers: space.servers, name, user: () => user, token, inboxPrefix, reconnect: false });
  };

  const token = await exchange();
  const [one, other] = [await connect(token), await connect(token)];
  const heard = new Promise<string>((resolve) => {
    other.subscribe(`cotal.${space.space}.chat.*.*.team.build`, {
      callback: (_, message) => resolve(message.string()),
    });
  });
  await other.flush();
  one.publish(`cotal.${space.space}.chat.${owner}.${actor}.team.build`, "built");
  expect(await heard).toBe("built");

  const preparing = {
    ...proven(manager, "manager-managed-agent-prepare-retirement"),
    target: { owner, actor, lifecycleUid },
    opId: retireOpId(lifecycleUid),
  };
  expect((await manager.client.call(agentPrepareRetirement, preparing)).prepared).toBe(true);
  await unchanged(space, "unauthenticated", exchange);
  await expect(connect(token)).rejects.toThrow();
  // Until the lifecycle is retired the alias stays taken, whoever asks for it.
  await unchanged(space, "failed-precondition", () =>
    manager.client.call(agentEnroll, enrolling as Input<typeof agentEnroll>, { once: true }),
  );
  await Promise.all([one.close(), other.close()]);
});
