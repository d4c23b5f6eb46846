import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Account, encodeAccount, encodeOperator, type Operator } from "@nats-io/jwt";
import { createAccount, createOperator, type KeyPair } from "@nats-io/nkeys";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseCreds } from "../../../shared/credentials/creds.ts";
import { decodeJwt } from "../../../shared/credentials/jwt.ts";
import { Space } from "../../../shared/tokens.ts";
import { type ShippedBroker, startShipped } from "./shipped-broker.ts";
import { space, type TestState, testState } from "./state.ts";

let state: TestState;
let dir: string;
let broker: ShippedBroker | undefined;
beforeEach(async () => {
  state = await testState();
  dir = join(state.parent, "import");
  await mkdir(dir);
});
afterEach(async () => {
  await broker?.stop();
  broker = undefined;
  await state.remove();
});

const seedOf = (pair: KeyPair) => new TextDecoder().decode(pair.getSeed());
const unlimited = { subs: -1, conn: -1, leaf: -1, imports: -1, exports: -1, data: -1, payload: -1, wildcards: true };
const jetstream = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };

/** What another tool made: JWTs by the public library, decorated as the command line prints them. */
interface Elsewhere {
  readonly operator: KeyPair;
  readonly operatorSigning: KeyPair;
  readonly system: KeyPair;
  readonly systemSigning: KeyPair;
  readonly space: KeyPair;
  /** What stands in the files, to be changed before `write`. */
  readonly operatorClaims: Partial<Operator>;
  readonly systemClaims: Partial<Account>;
  readonly spaceClaims: Partial<Account>;
  readonly signer: KeyPair;
  readonly seeds: { readonly operator: KeyPair; readonly system: KeyPair; readonly space: KeyPair };
  readonly exp?: number;
}

function elsewhere(more: Partial<Elsewhere> = {}): Elsewhere {
  const operator = createOperator();
  const [operatorSigning, system, systemSigning, spaceKey] = [
    createOperator(),
    createAccount(),
    createAccount(),
    createAccount(),
  ];
  return {
    operator,
    operatorSigning,
    system,
    systemSigning,
    space: spaceKey,
    operatorClaims: { signing_keys: [operatorSigning.getPublicKey()], system_account: system.getPublicKey() },
    systemClaims: { limits: unlimited, signing_keys: [systemSigning.getPublicKey()] },
    spaceClaims: {
      limits: { ...unlimited, ...jetstream },
      exports: [{ name: "kept", subject: "kept.>", type: "stream" as never }],
    },
    signer: operatorSigning,
    seeds: { operator: operatorSigning, system, space: spaceKey },
    ...more,
  };
}

async function write(from: Elsewhere, withSpace = true): Promise<void> {
  const put = async (name: string, jwt: string, key: KeyPair) => {
    await writeFile(
      join(dir, `${name}.jwt`),
      `-----BEGIN NATS ${name.toUpperCase()} JWT-----\n${jwt}\n------END NATS JWT------\n`,
    );
    await writeFile(join(dir, `${name}.nk`), `${seedOf(key)}\n`);
  };
  const { operator, signer, seeds } = from;
  const options = from.exp === undefined ? {} : { exp: from.exp };
  await put("operator", await encodeOperator("elsewhere", operator, from.operatorClaims, options), seeds.operator);
  await put("system", await encodeAccount("SYS", from.system, from.systemClaims, { signer }), seeds.system);
  if (withSpace) await put("space", await encodeAccount("MESH", from.space, from.spaceClaims, { signer }), seeds.space);
}

const account = async (pub: string) => decodeJwt((await state.text(`broker/accounts/${pub}.jwt`)).trim());

describe("importing", () => {
  it("takes over operator, system and space account; the broker admits our users under them", async () => {
    const from = elsewhere();
    await write(from);
    await state.init({ importDir: dir });
    broker = await startShipped(state.dir);
    expect(broker.log()).toContain('Operator: "elsewhere"');
    for (const name of ["exchange", "exchange_store", "custodian_system", "operator_callout"]) {
      await broker.connect(await state.text(`auth/space.64656d6f/${name}.creds`));
    }
    const claims = await account(from.space.getPublicKey());
    expect(claims.nats.exports).toMatchObject([{ name: "kept" }]);
    const { jwt } = parseCreds(await state.text("auth/space.64656d6f/exchange.creds"));
    expect(claims.nats.signing_keys).toEqual([decodeJwt(jwt).iss]);
    expect(claims.iss).toBe(from.operatorSigning.getPublicKey());
  });

  it("makes a space account where none is imported, for a second space too", async () => {
    await write(elsewhere(), false);
    await state.init({ importDir: dir });
    await state.init({ space: Space.parse("second"), importDir: dir });
    await state.init({ space: Space.parse("third") });
    broker = await startShipped(state.dir);
    for (const hex of ["64656d6f", "7365636f6e64", "7468697264"]) {
      await broker.connect(await state.text(`auth/space.${hex}/exchange.creds`));
    }
  });

  it("works under an operator that is strict about signing keys", async () => {
    const from = elsewhere();
    const strict = { ...from.operatorClaims, strict_signing_key_usage: true } as Partial<Operator>;
    await write({ ...from, operatorClaims: strict, seeds: { ...from.seeds, system: from.systemSigning } });
    await state.init({ importDir: dir });
    broker = await startShipped(state.dir);
    for (const name of ["exchange", "custodian_system"]) {
      await broker.connect(await state.text(`auth/space.64656d6f/${name}.creds`));
    }
  });

  it("goes on after a crash without the import, on what was imported", async () => {
    const from = elsewhere();
    await write(from);
    await state.init({ importDir: dir });
    await rm(join(state.dir, "space.64656d6f/space.json"));
    await rm(join(state.dir, "auth/space.64656d6f/public.json"));
    await rm(dir, { recursive: true });
    await state.init();
    expect((await account(from.space.getPublicKey())).nats.exports).toMatchObject([{ name: "kept" }]);
  });

  const past = 1_600_000_000;
  it.each<[string, string, (from: Elsewhere) => Elsewhere]>([
    [
      "another operator's seed",
      "operator.nk: is neither",
      (from) => ({ ...from, seeds: { ...from.seeds, operator: createOperator() } }),
    ],
    [
      "another account's seed",
      "space.nk: is neither",
      (from) => ({ ...from, seeds: { ...from.seeds, space: from.system } }),
    ],
    [
      "another system account",
      "operator.jwt: names another system account",
      (from) => ({
        ...from,
        operatorClaims: {
          system_account: from.space.getPublicKey(),
          signing_keys: [from.operatorSigning.getPublicKey()],
        },
      }),
    ],
    [
      "an account of another operator",
      "system.jwt: is not signed by this operator",
      (from) => ({ ...from, signer: createOperator() }),
    ],
    ["an expired operator", "operator.jwt: has expired", (from) => ({ ...from, exp: past })],
    [
      "a system account with JetStream",
      "system.jwt: has JetStream",
      (from) => ({ ...from, systemClaims: { limits: { ...unlimited, ...jetstream } } }),
    ],
    [
      "a space account without JetStream",
      "space.jwt: has no JetStream",
      (from) => ({ ...from, spaceClaims: { limits: unlimited } }),
    ],
    [
      "a space account with a callout",
      "space.jwt: has a callout of its own",
      (from) => ({
        ...from,
        spaceClaims: { ...from.spaceClaims, authorization: { auth_users: ["U"] } } as Partial<Account>,
      }),
    ],
    [
      "the root key of a strict operator",
      "operator.nk: must be a signing key",
      (from) => ({
        ...from,
        operatorClaims: { ...from.operatorClaims, strict_signing_key_usage: true } as Partial<Operator>,
        seeds: { ...from.seeds, operator: from.operator },
      }),
    ],
  ])("refuses %s, and writes nothing", async (_what, why, change) => {
    await write(change(elsewhere()));
    await expect(state.init({ importDir: dir })).rejects.toThrowError(
      expect.objectContaining({ code: "failed-precondition", reason: expect.stringContaining(why) }),
    );
    expect(await readdir(state.parent)).toEqual(["import"]);
  });

  it.each([
    ["operator.jwt", undefined, "is not there"],
    ["system.nk", undefined, "is not there"],
    ["space.nk", undefined, "is not there"],
    ["operator.jwt", "nothing", "does not hold exactly one"],
    ["system.jwt", "a.b.c", "is no JWT of version 2 with a good signature"],
  ])("refuses %s holding %s, and writes nothing", async (file, text, why) => {
    await write(elsewhere());
    if (text === undefined) await rm(join(dir, file));
    else await writeFile(join(dir, file), text);
    await expect(state.init({ importDir: dir })).rejects.toThrowError(
      expect.objectContaining({ reason: `${join(dir, file)}: ${why}` }),
    );
    expect(await readdir(state.parent)).toEqual(["import"]);
  });

  it("refuses an import over a finished space, and another operator for the next", async () => {
    await write(elsewhere());
    await state.init({ importDir: dir });
    const before = await state.files();
    await expect(state.init({ importDir: dir })).rejects.toThrowError(
      expect.objectContaining({ reason: expect.stringContaining("space demo is there already") }),
    );
    await write(elsewhere());
    await expect(state.init({ space: Space.parse("second"), importDir: dir })).rejects.toThrowError(
      expect.objectContaining({ reason: expect.stringContaining("has another operator than the import") }),
    );
    expect(await state.files()).toEqual(before);
    expect(space).toBe("demo");
  });
});
