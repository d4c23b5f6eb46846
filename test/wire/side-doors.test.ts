/**
 * The broker answers, and delivers to, whatever subject it is told to, unchecked. What a credential may ask JetStream
 * for must not become a way to write a row, an observation or a request (state §8, invariants 22 and 23).
 */
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ChannelPattern } from "../../shared/tokens.ts";
import { epoch, instanceId, local, person, space, uid } from "../kit/bindings.ts";
import { listen, member } from "../kit/members.ts";
import { type Mesh, startMesh } from "../kit/mesh.ts";
import { identity } from "../kit/probe.ts";

let mesh: Mesh;
let root: NatsConnection;
let agent: NatsConnection;
const heard: { subject: string; headers: string[]; body: string }[] = [];

const T = `${person}.cli.${uid}`;
const ROW = `$KV.cotal_auth_${space}.plane`;
const REQUEST = `cotal.${space}.ep.one.auth.run-admit.local.operator.${uid}.nonce`;
const OBSERVED = `cotal.${space}.ep.v1.inst.manager.${instanceId}.run-start.${T}.${"0".repeat(32)}.nonce`;

const channels = [ChannelPattern.parse("general")];
beforeAll(async () => {
  mesh = await startMesh();
  root = await mesh.root("space");
  agent = await member(mesh, "agent", identity(person, "cli"), (holder) => ({
    ...holder,
    allowSubscribe: channels,
    allowPublish: channels,
    spawn: false,
  }));
  const serving = await member(mesh, "service-serve", identity(local, `auth_serve_${instanceId}`), (holder) => ({
    ...holder,
    instanceId,
    epoch,
  }));
  serving.subscribe(`cotal.${space}.ep.one.auth.run-admit.>`, {
    queue: "auth",
    callback: (_, message) => {
      heard.push({ subject: message.subject, headers: message.headers?.keys() ?? [], body: message.string() });
    },
  });
  await serving.flush();
});
afterAll(() => mesh?.stop());

interface Info {
  readonly push_bound?: boolean;
  readonly delivered: { readonly stream_seq: number };
  readonly state: { readonly last_seq: number };
  readonly error?: { readonly description: string };
}
const api = async (connection: NatsConnection, subject: string, body?: object): Promise<Info> =>
  (await connection.request(`$JS.API.${subject}`, body ? JSON.stringify(body) : "")).json<Info>();

const lastOf = async (account: "space" | "authority", stream: string): Promise<number> => {
  const connection = account === "space" ? root : await mesh.root("authority");
  return (await api(connection, `STREAM.INFO.${stream}`)).state.last_seq;
};

describe("a push consumer", () => {
  const name = `chathist_${person}-cli-${uid}`;
  const general = `cotal.${space}.chat.*.*.general`;
  const aim = (deliver_subject: string) =>
    api(agent, `CONSUMER.CREATE.CHAT_${space}.${name}.${general}`, {
      stream_name: `CHAT_${space}`,
      config: { name, filter_subject: general, deliver_subject, ack_policy: "none", deliver_policy: "all" },
    });
  const drop = () => api(agent, `CONSUMER.DELETE.CHAT_${space}.${name}`);

  it("delivers where a literal subscription is", async () => {
    agent.publish(`cotal.${space}.chat.${person}.cli.general`, "hello");
    await agent.flush();
    const inbox = await listen(root, "here.it.is");
    await aim("here.it.is");
    expect(await inbox.first()).toBe("hello");
    await drop();
  });

  it.each([
    ["a row", ROW],
    ["an observed request", OBSERVED],
    ["a request on the class rail", REQUEST],
  ])("aimed at %s delivers nothing", async (_, subject) => {
    const before = [await lastOf("authority", `KV_cotal_auth_${space}`), await lastOf("space", `OBS_${space}`)];
    expect(await aim(subject)).not.toHaveProperty("error");
    const info = await api(agent, `CONSUMER.INFO.CHAT_${space}.${name}`);
    expect(info).toMatchObject({ delivered: { stream_seq: 0 } });
    expect(info.push_bound ?? false).toBe(false);
    const after = [await lastOf("authority", `KV_cotal_auth_${space}`), await lastOf("space", `OBS_${space}`)];
    expect(after).toEqual(before);
    expect(heard).toEqual([]);
    await drop();
  });
});

describe("an answer of the broker", () => {
  const ask = async (reply: string) => {
    root.publish(`$KV.cotal_channels_${space}.x`, '{"kind":"forged"}');
    await root.flush();
    const body = JSON.stringify({ last_by_subj: `$KV.cotal_channels_${space}.x` });
    agent.publish(`$JS.API.STREAM.MSG.GET.KV_cotal_channels_${space}`, body, { reply });
    await agent.flush();
  };

  it("aimed at a row reaches no authority stream, which is in another account", async () => {
    const before = await lastOf("authority", `KV_cotal_auth_${space}`);
    const arrived = await listen(root, ROW);
    await ask(ROW);
    // It did go out, in the account of who asked.
    expect(await arrived.first()).toContain("message");
    expect(await lastOf("authority", `KV_cotal_auth_${space}`)).toBe(before);
  });

  it("aimed at the class rail arrives there, and is told apart by subject, headers or body", async () => {
    const caller = await member(mesh, "manager-caller", identity(person, "cli"), (holder) => ({
      ...holder,
      instanceId,
    }));
    const name = `chathist_${person}-cli-${uid}`;
    const general = `cotal.${space}.chat.*.*.general`;
    root.publish(`cotal.${space}.epc.abc`, "forged");
    agent.publish(`cotal.${space}.chat.${person}.cli.general`, "forged");
    await Promise.all([root.flush(), agent.flush()]);
    await api(agent, `CONSUMER.CREATE.CHAT_${space}.${name}.${general}`, {
      stream_name: `CHAT_${space}`,
      config: { name, filter_subject: general, ack_policy: "none", deliver_policy: "last" },
    });
    await ask(REQUEST);
    caller.publish(`$JS.API.DIRECT.GET.EPC_${space}.cotal.${space}.epc.abc`, "", { reply: REQUEST });
    agent.publish(`$JS.API.CONSUMER.MSG.NEXT.CHAT_${space}.${name}`, "1", { reply: REQUEST });
    await expect.poll(() => heard.length).toBe(3);
    // No envelope; a header that only the broker sets; no request's subject.
    const tells = heard.map(({ subject, headers, body }) => {
      if (body.includes("io.nats.jetstream.api.v1.stream_msg_get_response")) return "body";
      return headers.includes("Nats-Stream") ? "headers" : subject;
    });
    expect(tells.sort()).toEqual(["body", `cotal.${space}.chat.${person}.cli.general`, "headers"]);
  });
});
