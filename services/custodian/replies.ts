/** What servers answer on the system account, read as from a stranger: `undefined` is a reply that cannot be read. */
import Type from "typebox";
import { Compile } from "typebox/compile";
import { ServerNkey } from "../../shared/tokens.ts";

/** Open objects: a later server may say more. */
const Server = Type.Object({
  id: ServerNkey.schema,
  name: Type.String({ minLength: 1, maxLength: 256 }),
  cluster: Type.Optional(Type.String({ maxLength: 256 })),
});
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Seconds = Type.Number({ minimum: 0, maximum: 86_400 });
const Failure = Type.Object({ description: Type.Optional(Type.String()) });

const StatszReply = Compile(
  Type.Object({
    server: Server,
    statsz: Type.Object({
      routes: Type.Optional(Type.Array(Type.Object({ name: Type.String({ minLength: 1, maxLength: 256 }) }))),
      gateways: Type.Optional(Type.Array(Type.Unknown())),
      jetstream: Type.Optional(
        Type.Object({ meta: Type.Optional(Type.Object({ cluster_size: Type.Integer({ minimum: 1 }) })) }),
      ),
    }),
    error: Type.Optional(Type.Never()),
  }),
);

const Listener = Type.Optional(Type.Object({ auth_timeout: Type.Optional(Seconds) }));
const VarzReply = Compile(
  Type.Object({
    server: Server,
    data: Type.Object({
      server_id: ServerNkey.schema,
      auth_timeout: Seconds,
      gateway: Type.Optional(Type.Object({ name: Type.Optional(Type.String()) })),
      websocket: Listener,
      mqtt: Listener,
    }),
    error: Type.Optional(Type.Never()),
  }),
);

const KickReply = Compile(
  Type.Object({ server: Type.Object({ id: ServerNkey.schema }), error: Type.Optional(Failure) }),
);

interface Named {
  readonly id: ServerNkey;
  readonly name: string;
  /** Empty on a server that is in none. */
  readonly cluster: string;
}

export interface Statsz extends Named {
  /** Names of the servers it has routes to, each once. */
  readonly routes: readonly string[];
  readonly gateways: boolean;
  readonly jetstream: boolean;
  /** Servers in the JetStream meta group, where there is one; a lost one stays in it. */
  readonly metaSize?: number;
}

export interface Varz extends Named {
  readonly gateways: boolean;
  /** The longest that a client may take to authenticate. */
  readonly authTimeoutMs: number;
}

export function readStatsz(data: Uint8Array): Statsz | undefined {
  const reply = read(StatszReply, data);
  if (!reply) return undefined;
  const { routes = [], gateways = [], jetstream } = reply.statsz;
  return {
    ...named(reply.server),
    routes: [...new Set(routes.map((route) => route.name))],
    gateways: gateways.length > 0,
    jetstream: jetstream !== undefined,
    ...(jetstream?.meta ? { metaSize: jetstream.meta.cluster_size } : {}),
  };
}

export function readVarz(data: Uint8Array): Varz | undefined {
  const reply = read(VarzReply, data);
  if (!reply || reply.data.server_id !== reply.server.id) return undefined;
  const { auth_timeout, gateway, websocket, mqtt } = reply.data;
  const seconds = Math.max(auth_timeout, websocket?.auth_timeout ?? 0, mqtt?.auth_timeout ?? 0);
  return { ...named(reply.server), gateways: Boolean(gateway?.name), authTimeoutMs: seconds * 1_000 };
}

/** What became of a kick; `undefined` where the answer says nothing. */
export function readKick(data: Uint8Array, server: ServerNkey): "kicked" | "gone" | undefined {
  const reply = read(KickReply, data);
  if (reply?.server.id !== server) return undefined;
  if (!reply.error) return "kicked";
  return reply.error.description?.startsWith("no such client") ? "gone" : undefined;
}

const PageReply = Compile(
  Type.Object({
    server: Type.Object({ id: Type.String() }),
    data: Type.Object({
      server_id: Type.String(),
      offset: Count,
      limit: Count,
      num_connections: Count,
      connections: Type.Array(
        Type.Object({
          cid: Count,
          kind: Type.String(),
          account: Type.String(),
          jwt: Type.Optional(Type.String()),
          authorized_user: Type.Optional(Type.String()),
        }),
      ),
    }),
    error: Type.Optional(Type.Never()),
  }),
);

export interface Connz {
  /** As the envelope and the answer name it. */
  readonly servers: readonly [string, string];
  readonly offset: number;
  readonly limit: number;
  readonly count: number;
  readonly connections: readonly {
    readonly cid: number;
    readonly kind: string;
    readonly account: string;
    readonly jwt?: string;
    readonly authorized_user?: string;
  }[];
}

export function readConnz(data: Uint8Array): Connz | undefined {
  const reply = read(PageReply, data);
  if (!reply) return undefined;
  const { server_id, offset, limit, num_connections: count, connections } = reply.data;
  return { servers: [reply.server.id, server_id], offset, limit, count, connections };
}

const named = (server: { id: ServerNkey; name: string; cluster?: string }): Named => ({
  id: server.id,
  name: server.name,
  cluster: server.cluster ?? "",
});

interface Checker<T> {
  Check(value: unknown): value is T;
}

function read<T>(checker: Checker<T>, data: Uint8Array): T | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data));
    return checker.Check(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
