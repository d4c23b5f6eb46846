import { describe, expect, test } from "vitest";
import { type ConnectRequest, openRequest, type Sealed } from "../../../services/callout/open.ts";
import { ServerKeys } from "../../../services/callout/server-keys.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { type Asking, Server } from "./asking.ts";

const curve = createKeyPair("curve");
const server = new Server(curve.public);
const seconds = () => Math.floor(Date.now() / 1_000);
const openWith = (sealed: Sealed, allowedServers?: string[]) =>
  openRequest(sealed, { keys: new ServerKeys(curve), now: seconds(), ...(allowedServers ? { allowedServers } : {}) });

function silence(sealed: Sealed, allowedServers?: string[]): string {
  const opened = openWith(sealed, allowedServers);
  return "silent" in opened ? opened.silent : "answered";
}

test("a server's request is read: whom to sign for, the bearer, the nonce, the client", () => {
  const sealed = server.ask({ token: "t", name: "n" });
  const { key, ...read } = openWith(sealed, [server.key.public]) as ConnectRequest;
  expect(key).toHaveLength(32);
  expect(read).toEqual({
    serverId: server.key.public,
    userNkey: sealed.userNkey,
    token: "t",
    name: "n",
    client: { host: "192.0.2.7", id: 42 },
  });
});

test("a client that sent neither bearer nor name is answered", () => {
  expect(openWith(server.ask())).toMatchObject({ token: undefined, name: undefined });
});

describe("silence", () => {
  const other = new Server(curve.public);
  const silent = (asking: Asking) => () => silence(server.ask(asking));
  const cases: [string, () => string, string][] = [
    ["no curve key in the header", () => silence({ ...server.ask(), xkey: "" }), "no Nats-Server-Xkey"],
    ["a header that is no curve key", () => silence({ ...server.ask(), xkey: "X1" }), "the box does not open"],
    [
      "another server's curve key",
      () => silence({ ...server.ask(), xkey: other.xkey.public }),
      "the box does not open",
    ],
    ["an altered box", () => silence(altered(server.ask())), "the box does not open"],
    ["an empty body", () => silence({ ...server.ask(), data: new Uint8Array() }), "the box does not open"],
    ["what is no JWT", () => silence(server.seal("hello")), "no signed request of a server"],
    ["a wrong signature", () => silence(resigned()), "no signed request of a server"],
    ["a user's signature", silent({ signer: createKeyPair("user") }), "no signed request of a server"],
    ["another audience", silent({ claims: { aud: "nats-authorization-response" } }), "another kind of request"],
    ["a request without members", silent({ body: { server_id: undefined } }), "another kind of request"],
    ["another server's signature", silent({ signer: other.key }), "signed by another server than it names"],
    [
      "the curve key of another server in the claims",
      silent({ body: { server_id: { id: server.key.public, xkey: other.xkey.public } } }),
      "sealed under another key than it names",
    ],
    [
      "no curve key in the claims",
      silent({ body: { server_id: { id: server.key.public } } }),
      "sealed under another key than it names",
    ],
    ["a server outside the list", () => silence(server.ask(), [other.key.public]), "a server that is not allowed"],
    ["a user key of another kind", silent({ body: { user_nkey: createKeyPair("account").public } }), "names no user"],
    ["a user key with a wrong checksum", silent({ body: { user_nkey: `U${"A".repeat(55)}` } }), "names no user"],
    ["a request nobody waits for", silent({ claims: { exp: seconds() - 2 } }), "the server has stopped waiting"],
  ];
  test.each(cases)("%s", (_name, reason, expected) => {
    expect(reason()).toBe(expected);
  });
});

describe("server keys", () => {
  test("are computed once, and only the keys of servers that opened a box are kept", () => {
    const keys = new ServerKeys(curve, 2);
    const now = seconds();
    openRequest(server.ask(), { keys, now });
    expect(keys.get(server.xkey.public)).toBe(keys.get(server.xkey.public));
    openRequest({ ...server.ask(), xkey: createKeyPair("curve").public }, { keys, now });
    expect(keys.size).toBe(1);
  });

  test("of the server used least recently go first", () => {
    const keys = new ServerKeys(curve, 2);
    const [a, b, c] = [0, 1, 2].map(() => createKeyPair("curve").public) as [string, string, string];
    const kept = Uint8Array.of(1);
    for (const name of [a, b, a, c]) keys.keep(name, kept);
    expect([a, b, c].map((name) => keys.get(name) === kept)).toEqual([true, false, true]);
  });
});

function altered(sealed: Sealed): Sealed {
  const data = Uint8Array.from(sealed.data);
  data[data.length - 1] = (data.at(-1) ?? 0) ^ 1;
  return { ...sealed, data };
}

/** A good header and payload under a signature of something else. */
function resigned(): Sealed {
  const [one, other] = [server.ask({ name: "a" }), server.ask({ name: "b" })].map(
    (sealed) => Buffer.from(serverPlain(sealed)).toString().split(".") as [string, string, string],
  ) as [[string, string, string], [string, string, string]];
  return server.seal([one[0], one[1], other[2]].join("."));
}

function serverPlain(sealed: Sealed): Uint8Array {
  const opened = server.plain(sealed);
  if (!opened) throw new Error("the request does not open");
  return opened;
}
