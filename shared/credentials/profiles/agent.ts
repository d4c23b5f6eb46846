import Type, { type Static } from "typebox";
import { ChannelPattern, RoleName } from "../../tokens.ts";
import { DELIVERY, MANAGER } from "./commands.ts";
import { MeshStreams, profile } from "./profile.ts";
import { bind, each, get, info, words } from "./words.ts";

const Channels = Type.Unsafe<readonly Static<typeof ChannelPattern.schema>[]>(Type.Array(ChannelPattern.schema));
/** Channel lists as the actor row has them. */
export const ChannelLists = { allowSubscribe: Channels, allowPublish: Channels };

/** A principal's ordinary connection: a person or a managed agent. */
export const agent = profile({
  name: "agent",
  kind: "view",
  bindings: {
    ...ChannelLists,
    /** The actor holds scope `spawn`. */
    spawn: Type.Boolean(),
    role: Type.Optional(RoleName.schema),
    streams: Type.Optional(MeshStreams),
  },
  rows(b) {
    const { P, T, kv, watch, chatReader, RE, DESC, CHAT, DM, TASK, DLV, PRES, CHAN, LEASE } = words(b, b.streams);
    const mailbox = `${b.owner}-${b.actor}-${b.uid}`;
    return {
      publish: [
        each(b.allowPublish, (channel) => `${P}.chat.${b.owner}.${b.actor}.${channel}`),
        `${P}.inst.*.*.${b.owner}.${b.actor}`,
        `${P}.svc.*.${b.owner}.${b.actor}`,
        DESC,
        each(DELIVERY.self, (command) => `${P}.ep.one.delivery.${command}.self.${T}.*`),
        each(MANAGER.self, (command) => `${P}.ep.one.manager.${command}.self.${T}.*`),
        b.spawn ? each(MANAGER.owner, (command) => `${P}.ep.one.manager.${command}.owner.${b.owner}.${T}.*`) : [],
        info(CHAT, PRES, CHAN, LEASE),
        b.allowSubscribe.map((channel) => chatReader(b, channel)),
        bind(DM, `dm_${mailbox}`),
        bind(DLV, `dlv_${mailbox}`),
        kv("presence", `${b.owner}.${b.actor}`),
        watch("PRES", "CHAN"),
        get(CHAN, LEASE),
        "$JS.FC.>",
        b.role === undefined ? [] : [info(TASK), bind(TASK, `svc_${b.role}`)],
      ],
      subscribe: [RE, each(b.allowSubscribe, (channel) => `${P}.chat.*.*.${channel}`), `${P}.epe.*.*.*.goal.${T}.>`],
      denyPublish: [DM, TASK, DLV].map((stream) => [
        `$JS.API.CONSUMER.CREATE.${stream}`,
        `$JS.API.CONSUMER.CREATE.${stream}.>`,
        `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.>`,
      ]),
    };
  },
});
