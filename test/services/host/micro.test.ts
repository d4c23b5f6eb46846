/** What `nats micro` sees of a space: every answer on `$SRV` fits ADR-32 and says what wire §9 lists. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type HostedService, SERVICES } from "../../../services/service.ts";
import { authContracts } from "../../../shared/contracts/auth.ts";
import { custodianContracts } from "../../../shared/contracts/custodian.ts";
import { exchangeContracts } from "../../../shared/contracts/exchange.ts";
import type { Operation } from "../../../shared/contracts/operation.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { loadCreds } from "../../../shared/secrets/keys.ts";
import { discover, shaped } from "../../kit/micro.ts";
import { Rail } from "../../kit/rail.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";
import { everyOperation } from "../../shared/contracts/every-operation.ts";

let space: TestSpace;
/** As `nats micro` with the operator's credentials of one account. */
let asking: Record<"operator" | "operator_callout", Awaited<ReturnType<typeof enter>>>;

async function enter(name: "operator" | "operator_callout") {
  const { jwt, seed } = await loadCreds(space.secrets, space.space, name);
  return space.enter(name, { jwt, key: keyPairFromSeed(seed) }, { inboxPrefix: "_INBOX" });
}

beforeAll(async () => {
  space = await startSpace({ services: SERVICES, replicas: 2 });
  asking = { operator: await enter("operator"), operator_callout: await enter("operator_callout") };
});
afterAll(() => space.stop());

const connectionFor = (service: HostedService) => (service === "callout" ? asking.operator_callout : asking.operator);

/** Everybody's answer to one question, once both replicas have given theirs. */
async function everybody(service: HostedService, verb: "PING" | "INFO" | "STATS", subject: string) {
  const connection = connectionFor(service);
  const answers: ReturnType<typeof shaped<typeof verb>>[] = [];
  const inbox = `_INBOX.${Math.random().toString(36).slice(2)}`;
  const heard = connection.subscribe(inbox, {
    callback: (_, message) => void answers.push(shaped(verb, message.json())),
  });
  connection.publish(subject, "", { reply: inbox });
  await expect.poll(() => answers.filter(({ name }) => name === service).length, { interval: 5 }).toBe(2);
  heard.unsubscribe();
  return answers.filter(({ name }) => name === service);
}

describe.each(SERVICES)("%s", (service) => {
  it.each(["PING", "INFO", "STATS"] as const)(
    "answers %s to all, by name and by id, within its schema",
    async (verb) => {
      const toAll = await everybody(service, verb, `$SRV.${verb}`);
      const byName = await everybody(service, verb, `$SRV.${verb}.${service}`);
      const ids = toAll.map(({ id }) => id).sort();
      expect(new Set(ids).size).toBe(2);
      expect(byName.map(({ id }) => id).sort()).toEqual(ids);
      for (const id of ids) {
        expect(await discover(connectionFor(service), verb, service, id)).toMatchObject({ id, name: service });
      }
    },
  );

  it("says which incarnation of which space it is", async () => {
    const answers = await everybody(service, "INFO", `$SRV.INFO.${service}`);
    const instances = answers.map(({ metadata }) => metadata.instance);
    expect(new Set(instances).size).toBe(2);
    for (const { metadata, version } of answers) {
      expect(version).toBe("0.1.0");
      expect(metadata.space).toBe("demo");
      expect(metadata.instance).toMatch(/^[a-z0-9]{26,32}$/);
      expect(metadata.epoch).toBe("0");
    }
  });
});

const OPERATED = [
  ["auth", authContracts],
  ["exchange", exchangeContracts],
  ["custodian", custodianContracts],
] as const;

describe.each(OPERATED)("the endpoints of %s", (service, contracts) => {
  it("are its operations, each with its queue, effect, capability and digests", async () => {
    const info = await discover(asking.operator, "INFO", service);
    expect(info.metadata.contract).toBe(contracts.clusterDigest);
    expect(info.metadata.registrationRevision).toMatch(service === "auth" ? /^[1-9]\d*$/ : /^0$/);
    const own = new Map(info.endpoints.map((endpoint) => [endpoint.name, endpoint]));
    const operations: Operation[] = everyOperation.filter((one) => one.service === service && own.has(one.name));
    expect(own.size).toBe(operations.length + 1);
    for (const { name, effect, capability } of operations) {
      const pair = contracts.pairs.get(name);
      expect(own.get(name)).toEqual({
        name,
        subject: `cotal.demo.ep.one.${service}.${name}.>`,
        queue_group: service,
        metadata: { effect, capability, ...(pair ? { input: pair.inputDigest, output: pair.outputDigest } : {}) },
      });
    }
    const { instance } = info.metadata;
    expect(own.get("describe-instance")).toMatchObject({
      subject: `cotal.demo.ep.inst.${service}.${instance}.describe.>`,
      queue_group: "",
    });
  });

  it("say in describe what they say on $SRV", async () => {
    const rail = await Rail.open(space);
    const describeOp = everyOperation.find((one) => one.service === service && one.name === "describe");
    if (!describeOp) throw new Error("no describe");
    const reply = await rail.send(rail.draft(describeOp));
    expect(reply.ok).toBe(true);
    expect(reply.data).toMatchObject({
      v: 1,
      public: true,
      descriptor: { endpoint: service, owner: "local", clusterDigests: [contracts.clusterDigest] },
    });
  });
});
