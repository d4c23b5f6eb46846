/** What cannot be probed one subject at a time: credentials of the mesh at the work that they are made for. */
import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemPorts } from "../../shared/ports.ts";
import { ChannelPattern, Generation, Hex64 } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { epoch, instanceId, manager, person, runId, space, surface, takeoverId, uid } from "../kit/bindings.ts";
import { authority, listen, member } from "../kit/members.ts";
import { type Mesh, startMesh } from "../kit/mesh.ts";
import { identity } from "../kit/probe.ts";

let mesh: Mesh;
let root: NatsConnection;
beforeAll(async () => {
  mesh = await startMesh();
  root = await mesh.root("space");
});
afterAll(() => mesh?.stop());

const channels = [ChannelPattern.parse("general")];
const agent = () =>
  member(mesh, "agent", identity(person, "cli"), (holder) => ({
    ...holder,
    allowSubscribe: channels,
    allowPublish: channels,
    spawn: true,
  }));

describe("an agent", () => {
  it("writes and reads its channels", async () => {
    const connection = await agent();
    const [js, jsm] = [jetstream(connection), await jetstreamManager(connection)];
    await js.publish(`cotal.${space}.chat.${person}.cli.general`, "hello");
    const name = `chathist_${person}-cli-${uid}`;
    const filter_subject = `cotal.${space}.chat.*.*.general`;
    await jsm.consumers.add(`CHAT_${space}`, { name, filter_subject, ack_policy: AckPolicy.None });
    const history = await js.consumers.get(`CHAT_${space}`, name);
    expect((await history.next())?.string()).toBe("hello");
    expect(await jsm.consumers.delete(`CHAT_${space}`, name)).toBe(true);
  });

  it("reads and acknowledges its mailbox, which somebody else made", async () => {
    const connection = await agent();
    const durable_name = `dm_${person}-cli-${uid}`;
    const filter_subject = `cotal.${space}.inst.${person}.cli.>`;
    const rootJsm = await jetstreamManager(root);
    await rootJsm.consumers.add(`DM_${space}`, { durable_name, filter_subject, ack_policy: AckPolicy.Explicit });
    root.publish(`cotal.${space}.inst.${person}.cli.${person}.coder`, "mail");
    const mailbox = await jetstream(connection).consumers.get(`DM_${space}`, durable_name);
    const message = await mailbox.next();
    expect(message?.string()).toBe("mail");
    expect(await message?.ackAck()).toBe(true);
  });

  it("watches presence under the one name it may use", async () => {
    const connection = await agent();
    const [js, jsm] = [jetstream(connection), await jetstreamManager(connection)];
    await js.publish(`$KV.cotal_presence_${space}.${person}.cli`, "{}");
    const watch = {
      filter_subject: `$KV.cotal_presence_${space}.>`,
      deliver_policy: DeliverPolicy.LastPerSubject,
      ack_policy: AckPolicy.None,
    };
    const name = `pres_${person}-cli-${uid}`;
    await jsm.consumers.add(`KV_cotal_presence_${space}`, { name, ...watch });
    const presence = await js.consumers.get(`KV_cotal_presence_${space}`, name);
    expect((await presence.next())?.subject).toBe(`$KV.cotal_presence_${space}.${person}.cli`);
    await expect(jsm.consumers.add(`KV_cotal_presence_${space}`, { name: "mine", ...watch })).rejects.toThrow(
      /Permissions Violation/,
    );
  });

  it("cannot say in the body of a consumer what it may not say in the subject", async () => {
    const connection = await agent();
    const name = `chathist_${person}-cli-${uid}`;
    const general = `cotal.${space}.chat.*.*.general`;
    const CHAT = `CHAT_${space}`;
    const asked = [
      { stream_name: CHAT, config: { name, filter_subject: `cotal.${space}.chat.>` } },
      { stream_name: CHAT, config: { name, filter_subjects: [general, `cotal.${space}.chat.*.*.secret`] } },
      { stream_name: CHAT, config: { name } },
      { stream_name: CHAT, config: { name: "mine", filter_subject: general } },
      { stream_name: CHAT, config: { name, durable_name: "mine", filter_subject: general } },
      { stream_name: `DM_${space}`, config: { name, filter_subject: general } },
    ];
    const answers = await Promise.all(
      asked.map((body) =>
        connection.request(`$JS.API.CONSUMER.CREATE.${CHAT}.${name}.${general}`, JSON.stringify(body)),
      ),
    );
    const names = answers.map((answer) => answer.json<{ name?: string }>().name);
    // Another `name` in the body alone is passed over: the one in the subject counts.
    expect(names).toEqual([undefined, undefined, undefined, name, undefined, undefined]);
  });
});

describe("an admin", () => {
  it("reads chat through the library's own ordered consumers", async () => {
    root.publish(`cotal.${space}.chat.${person}.cli.plans`, "plans");
    const connection = await member(mesh, "admin", identity(person, "boss"), (holder) => holder);
    const ordered = await jetstream(connection).consumers.get(`CHAT_${space}`, {
      filter_subjects: `cotal.${space}.chat.*.*.plans`,
    });
    expect((await ordered.next({ expires: 2_000 }))?.string()).toBe("plans");
  });
});

describe("a run", () => {
  it("is driven by compare-and-append, and replayed by a reader of its own", async () => {
    const connection = await member(mesh, "run-driver", identity(person, "wf_5efa0f059f6f"), (holder) => ({
      ...holder,
      runId,
      takeoverId,
    }));
    const [js, jsm] = [jetstream(connection), await jetstreamManager(connection)];
    const subject = `cotal.${space}.wfj.${runId}`;
    const { seq } = await js.publish(subject, "1", { expect: { lastSubjectSequence: 0 } });
    await expect(js.publish(subject, "2", { expect: { lastSubjectSequence: 0 } })).rejects.toThrow();
    await js.publish(subject, "2", { expect: { lastSubjectSequence: seq } });
    const name = `wfj_${runId}_${takeoverId}`;
    await jsm.consumers.add(`WFJ_${space}`, { name, filter_subject: subject, ack_policy: AckPolicy.None });
    const reader = await js.consumers.get(`WFJ_${space}`, name);
    expect([(await reader.next())?.string(), (await reader.next())?.string()]).toEqual(["1", "2"]);
  });
});

describe("a transfer", () => {
  it("is written by one and read by the other, each by direct reads alone", async () => {
    const hex = Hex64.parse("c".repeat(64));
    const [writer, reader] = await Promise.all([
      member(mesh, "transfer-writer", identity(person, "cli"), (holder) => ({ ...holder, instanceId, hex })),
      member(mesh, "transfer-reader", identity(person, `manager_${instanceId}`), (h) => ({ ...h, instanceId })),
    ]);
    const bucket = `cotal_xfer_${space}_${instanceId}`;
    const subject = `$O.${bucket}.C.${hex}`;
    await jetstream(writer).publish(subject, "chunk");
    for (const connection of [writer, reader]) {
      const got = await connection.request(`$JS.API.DIRECT.GET.OBJ_${bucket}.${subject}`);
      expect(got.string()).toBe("chunk");
    }
  });
});

describe("a manager and its caller", () => {
  const generation = Generation.parse("ab".repeat(16));
  const caller = () =>
    member(mesh, "manager-caller", identity(person, "cli"), (holder) => ({
      ...holder,
      instanceId,
      issued: { generation, token: "1".repeat(32) },
    }));

  it("talk over the derived rail, the generation on both sides", async () => {
    const asking = await caller();
    const serving = await member(mesh, "endpoint-serve", identity(person, `manager_serve_${instanceId}`), (holder) => ({
      ...holder,
      endpoint: manager,
      instanceId,
      epoch,
      commands: surface,
      pools: [],
    }));
    const tail = `${person}.cli.${uid}.${generation}.nonce`;
    serving.subscribe(`cotal.${space}.ep.v1.inst.manager.${instanceId}.list.>`, {
      callback: () => serving.publish(`cotal.${space}.ep.v1.reply.manager.${instanceId}.${epoch}.${tail}`, "answer"),
    });
    await serving.flush();
    const reply = await listen(asking, `cotal.${space}.ep.v1.reply.*.*.*.${person}.cli.${uid}.${generation}.*`);
    asking.publish(`cotal.${space}.ep.v1.inst.manager.${instanceId}.list.${tail}`);
    expect(await reply.first()).toBe("answer");
  });

  it("leave a run request where `auth` takes it, once", async () => {
    const asking = await caller();
    const subject = `cotal.${space}.ep.v1.inst.manager.${instanceId}.run-start.${person}.cli.${uid}.${generation}.nonce`;
    asking.publish(subject, "{}");
    await asking.flush();
    const { store } = await authority(mesh);
    const work = ownWork(systemPorts, 5_000);
    expect(await store.take(subject, work)).toMatchObject({ subject });
    expect(await store.take(subject, work)).toBeUndefined();
  });
});
