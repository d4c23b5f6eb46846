import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { activateNext, publishNext, removeCompromised, retire } from "../../../services/offline/issuer-steps.ts";
import { rotateCreds, rotateIssuer } from "../../../services/offline/rotate.ts";
import { decodeJwt } from "../../../shared/credentials/jwt.ts";
import type { UserName } from "../../../shared/credentials/users.ts";
import { type Ports, systemPorts } from "../../../shared/ports.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { type IssuerFile, issuerDocument, newIssuerFile, newIssuerKey } from "../../../shared/secrets/issuer.ts";
import { loadSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { secretKey } from "../../../shared/secrets/store.ts";
import { type ShippedBroker, startShipped } from "./shipped-broker.ts";
import { space, type TestState, testState, whoami } from "./state.ts";

const S = "space.64656d6f";

describe("rotating creds", () => {
  let state: TestState;
  let broker: ShippedBroker | undefined;
  beforeEach(async () => {
    state = await testState();
    await state.init();
  });
  afterEach(async () => {
    await broker?.stop();
    broker = undefined;
    await state.remove();
  });

  const rotate = (name: UserName) =>
    rotateCreds({ stateDir: state.dir, space, name, permissionsOf: whoami, ports: systemPorts });
  const keys = async () => loadSecret(await directoryStore(state.dir), space, SECRET.publicKeys);
  const credsOf = async (name: UserName) =>
    name === "callout"
      ? (await loadSecret(await directoryStore(state.dir), space, SECRET.calloutKeys)).calloutCreds
      : state.text(`auth/${S}/${name}.creds`);

  it.each<UserName>(["exchange", "exchange_store", "custodian_system", "callout", "operator_callout"])(
    "closes the old connection of %s at the reload, refuses the old creds and admits the new",
    async (name) => {
      broker = await startShipped(state.dir);
      const former = await credsOf(name);
      const connection = await broker.connect(former);
      const bystander = await broker.connect(await credsOf("operator"));
      const { users } = await keys();
      const { nkey, revoked } = await rotate(name);
      expect(revoked).toEqual([users[name]]);
      expect((await keys()).users).toEqual({ ...users, [name]: nkey });
      await broker.reload();
      await connection.closed();
      await expect(broker.connect(former)).rejects.toThrowError(expect.objectContaining({ code: "unauthenticated" }));
      await broker.connect(await credsOf(name));
      await bystander.flush();
    },
  );

  it("lists the new user of the callout account in place of the old", async () => {
    const { accounts } = await keys();
    const { nkey } = await rotate("operator_callout");
    const { nats } = decodeJwt((await state.text(`broker/accounts/${accounts.callout}.jwt`)).trim());
    const { users } = await keys();
    expect(nats.authorization).toMatchObject({ auth_users: [users.callout, nkey], allowed_accounts: [accounts.space] });
  });

  it("revokes also what an attempt left that ended between its writes", async () => {
    const store = await directoryStore(state.dir);
    const key = secretKey(space, "public.json");
    const before = await store.get(key);
    const first = await rotate("exchange");
    await store.put(key, before ?? new Uint8Array());
    const second = await rotate("exchange");
    expect(new Set(second.revoked)).toEqual(new Set([...first.revoked, first.nkey]));
  });

  it("makes no space and needs the root seeds", async () => {
    const other = { stateDir: state.dir, space: "x" as typeof space, name: "exchange", permissionsOf: whoami } as const;
    await expect(rotateCreds({ ...other, ports: systemPorts })).rejects.toThrowError(
      expect.objectContaining({ reason: expect.stringContaining("space.json: is not there") }),
    );
  });

  it("moves the issuer file on, one step at a time", async () => {
    const store = await directoryStore(state.dir);
    let now = Date.now();
    const ports: Ports = { ...systemPorts, now: () => now };
    const step = (change: Parameters<typeof rotateIssuer>[0]["change"]) =>
      rotateIssuer({ stateDir: state.dir, space, ports, change });
    await expect(step({ step: "next" })).rejects.toThrowError(
      expect.objectContaining({ reason: expect.stringContaining("issuer.json: is not there") }),
    );
    const first = newIssuerFile(space, ports);
    await store.create(secretKey(space, "issuer.json"), issuerDocument.encode(first));
    await step({ step: "next" });
    now += 365_000;
    const active = await step({ step: "activate" });
    now += 1_205_000;
    const retired = await step({ step: "retire", kid: first.activeKid });
    expect(retired).toMatchObject({ rev: 4, activeKid: active.activeKid });
    expect(retired.keys.map(({ kid }) => kid)).toEqual([active.activeKid]);
    expect(await loadSecret(store, space, SECRET.issuer)).toEqual(retired);
  });
});

describe("rotating the issuer", () => {
  const t0 = 1_790_000_000_000;
  const at = (ms: number): Ports => ({ ...systemPorts, now: () => t0 + ms });
  const fresh = (ms: number) => newIssuerKey(at(ms));
  const first = newIssuerFile(space, at(0));
  const [a = ""] = first.keys.map(({ kid }) => kid);
  const second = publishNext(first, fresh(1_000));
  const b = second.keys[1]?.kid ?? "";
  const active = activateNext(second, t0 + 366_000);

  const refusal = (message: string) => expect.objectContaining({ code: "failed-precondition", message });
  /** Every step leaves a file that would be read again, at the next revision. */
  function valid(file: IssuerFile, from: IssuerFile): IssuerFile {
    expect(issuerDocument.decode("issuer.json", issuerDocument.encode(file))).toEqual(file);
    expect(file.rev).toBe(from.rev + 1);
    return file;
  }

  it("publishes a key that does not sign, up to three", () => {
    expect(valid(second, first)).toMatchObject({ activeKid: a });
    const third = valid(publishNext(second, fresh(2_000)), second);
    expect(() => publishNext(third, fresh(3_000))).toThrowError(refusal("there are 3 keys already, retire one first"));
  });

  it("lets the next key sign once everybody knows it, the former staying published", () => {
    expect(() => activateNext(second, t0 + 365_999)).toThrowError(
      refusal("the key is not known everywhere yet, wait 1 s"),
    );
    expect(valid(active, second)).toMatchObject({
      activeKid: b,
      keys: [
        { kid: a, activeAt: t0, stoppedAt: t0 + 366_000 },
        { kid: b, activeAt: t0 + 366_000 },
      ],
    });
    expect(() => activateNext(active, t0 + 999_000)).toThrowError(
      refusal("no key waits to be activated, publish one first"),
    );
  });

  it("activates the key published first", () => {
    const third = publishNext(second, fresh(500));
    expect(activateNext(third, t0 + 999_000).activeKid).toBe(third.keys[2]?.kid);
  });

  it("retires a key only when no bearer of it can be valid", () => {
    const stopped = t0 + 366_000;
    expect(() => retire(active, a, stopped + 1_204_999)).toThrowError(
      refusal("bearers of this key may still be valid, wait 1 s"),
    );
    expect(valid(retire(active, a, stopped + 1_205_000), active).keys.map(({ kid }) => kid)).toEqual([b]);
    expect(() => retire(active, b, t0 + 9_999_000)).toThrowError(refusal("this key signs, activate another first"));
    expect(() => retire(second, b, t0 + 9_999_000)).toThrowError(refusal("this key has not signed yet"));
    expect(() => retire(active, "x", t0)).toThrowError(expect.objectContaining({ code: "not-found" }));
  });

  it("removes a compromised key at once, whichever it is", () => {
    const never = () => {
      throw new Error("no key is needed");
    };
    expect(valid(removeCompromised(active, a, never, t0), active).keys.map(({ kid }) => kid)).toEqual([b]);
    expect(valid(removeCompromised(second, b, never, t0), second).activeKid).toBe(a);
    expect(() => removeCompromised(active, "x", never, t0)).toThrowError(
      expect.objectContaining({ code: "not-found" }),
    );
  });

  it("lets the next key take over from a compromised one, or else a fresh one", () => {
    const taken = valid(
      removeCompromised(second, a, () => fresh(0), t0 + 5_000),
      second,
    );
    expect(taken).toMatchObject({ activeKid: b, keys: [{ kid: b, activeAt: t0 + 5_000 }] });
    const key = fresh(6_000);
    const alone = valid(
      removeCompromised(active, b, () => key, t0 + 6_000),
      active,
    );
    expect(alone.activeKid).toBe(key.kid);
    expect(alone.keys.map(({ kid }) => kid)).toEqual([a, key.kid]);
  });
});
