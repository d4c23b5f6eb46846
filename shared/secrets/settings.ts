/** The public files of a space, `space.<hex>/…`: settings, IdP pins, sentinel, instances, loopback capability (identity §1). */
import Type, { type Static } from "typebox";
import type { Creds } from "../credentials/creds.ts";
import { MeshStreams } from "../credentials/profiles/profile.ts";
import { newUid, type Ports } from "../ports.ts";
import { ServerNkey, Space, Uid } from "../tokens.ts";
import { document, refused } from "./document.ts";
import type { Exposure, Folder } from "./folder.ts";
import { decodeCreds } from "./keys.ts";
import { PinFile } from "./pins.ts";
import { type SecretStore, STORE_IDENTITY, spaceFolder } from "./store.ts";

const closed = { additionalProperties: false } as const;
const Ver = Type.Literal(1);
const Port = Type.Integer({ minimum: 1, maximum: 65_535 });
const Url = Type.String({ maxLength: 2_048, pattern: "^https?://" });

const SpaceSettings = Type.Object(
  {
    ver: Ver,
    space: Space.schema,
    storeIdentity: Type.String({ pattern: STORE_IDENTITY.source }),
    development: Type.Optional(Type.Literal(true)),
    broker: Type.Object(
      {
        /** What clients are told to connect to. */
        advertised: Type.String({ maxLength: 256, pattern: "^(nats|tls|ws|wss)://[^\\s/]+$" }),
        tlsRequired: Type.Boolean(),
        /** Server nkeys that the callout answers; absent: all. */
        allowedServers: Type.Optional(Type.Array(ServerNkey.schema, { minItems: 1, maxItems: 64 })),
        /** How many servers a complete sweep has heard. */
        expectedServers: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_024 })),
      },
      closed,
    ),
    streams: Type.Optional(MeshStreams),
    gateway: Type.Object(
      {
        loopbackPort: Port,
        publicPort: Type.Optional(Port),
        publicUrl: Type.Optional(Url),
        trustedProxy: Type.Optional(Type.Boolean()),
      },
      closed,
    ),
    agentProvisioningUrl: Type.Optional(Type.String({ maxLength: 2_048, pattern: "^https://" })),
    policy: Type.Optional(Type.Object({ events: Type.Literal("required") }, closed)),
  },
  closed,
);
export type SpaceSettings = Static<typeof SpaceSettings>;

const Instance = Type.Object({ ver: Ver, instanceId: Uid.schema }, closed);

/** How a local client finds and may use the loopback face (identity §11.1). */
const LoopbackFace = Type.Object(
  {
    ver: Ver,
    url: Url,
    pid: Type.Integer({ minimum: 1 }),
    cap: Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" }),
    publicUrl: Type.Optional(Url),
  },
  closed,
);
export type LoopbackFace = Static<typeof LoopbackFace>;

export const settingsDocument = document(SpaceSettings, ({ gateway }) =>
  gateway.publicUrl !== undefined && gateway.publicPort === undefined
    ? "/gateway/publicUrl needs publicPort"
    : undefined,
);
const instanceDocument = document(Instance);
const loopbackDocument = document(LoopbackFace);

/** Where these files are: in the state folder, or with a host's other secrets. */
interface Place {
  read(file: string, exposure: Exposure): Promise<Uint8Array | undefined>;
  create(file: string, bytes: Uint8Array, exposure: Exposure): Promise<boolean>;
  /** As a refusal names it. */
  name(file: string): string;
}

/** The files of one space. */
export class SpaceFiles {
  readonly #space: Space;
  readonly #place: Place;

  constructor(space: Space, place: Place) {
    this.#space = space;
    this.#place = place;
  }

  /** `storeIdentity` is the store's, and must be the one in the settings. */
  async settings(storeIdentity: string): Promise<SpaceSettings> {
    const settings = await this.readSettings(storeIdentity);
    if (settings === undefined) throw refused(this.#place.name(SETTINGS_FILE), "is not there: run init first");
    return settings;
  }

  async readSettings(storeIdentity: string): Promise<SpaceSettings | undefined> {
    const name = this.#place.name(SETTINGS_FILE);
    const bytes = await this.#place.read(SETTINGS_FILE, "public");
    if (bytes === undefined) return undefined;
    const settings = settingsDocument.decode(name, bytes);
    if (settings.space !== this.#space) throw refused(name, "is of another space");
    if (settings.storeIdentity !== storeIdentity) throw refused(name, "is of another secret store");
    return settings;
  }

  /** False: there are settings already. */
  createSettings(settings: SpaceSettings): Promise<boolean> {
    return this.#place.create(SETTINGS_FILE, settingsDocument.encode(settings), "public");
  }

  async pins(): Promise<PinFile> {
    const bytes = await this.#place.read(PINS_FILE, "public");
    if (bytes === undefined) throw refused(this.#place.name(PINS_FILE), "is not there: run idp add first");
    return PinFile.decode(this.#place.name(PINS_FILE), bytes);
  }

  /** False: there are pins already. */
  createPins(pins: PinFile): Promise<boolean> {
    return this.#place.create(PINS_FILE, PinFile.encode(pins), "public");
  }

  /** The text of the creds that everyone presents beside a bearer; public by design. */
  async sentinel(): Promise<{ readonly text: string } & Creds> {
    const name = this.#place.name(SENTINEL_FILE);
    const bytes = await this.#place.read(SENTINEL_FILE, "public");
    if (bytes === undefined) throw refused(name, "is not there");
    const text = new TextDecoder().decode(bytes);
    return { text, ...decodeCreds(name, text) };
  }

  createSentinel(text: string): Promise<boolean> {
    return this.#place.create(SENTINEL_FILE, new TextEncoder().encode(text), "public");
  }

  hasSentinel(): Promise<boolean> {
    return this.#place.read(SENTINEL_FILE, "public").then((bytes) => bytes !== undefined);
  }

  /** The instance id of a slot of `auth`, drawn at its first start (identity §1.1). */
  async instanceId(slot: string, ports: Ports): Promise<Uid> {
    const file = `instance/auth.${slot}.json`;
    if (!SLOT.test(slot)) throw refused("--instance", "a slot is 1 to 32 of a-z, 0-9 and -");
    const fresh = instanceDocument.encode({ ver: 1, instanceId: newUid(ports) });
    const present = await this.#place.read(file, "secret");
    if (present === undefined) await this.#place.create(file, fresh, "secret");
    const bytes = present ?? (await this.#place.read(file, "secret"));
    if (bytes === undefined) throw refused(this.#place.name(file), "was there and is gone");
    return instanceDocument.decode(this.#place.name(file), bytes).instanceId;
  }
}

const SETTINGS_FILE = "space.json";
const PINS_FILE = "idp.json";
const SENTINEL_FILE = "sentinel.creds";
const SLOT = /^[a-z0-9-]{1,32}$/;

/** The files of a space in the state folder. */
export function spaceFiles(folder: Folder, space: Space): SpaceFiles {
  const path = (file: string) => `${spaceFolder(space)}/${file}`;
  return new SpaceFiles(space, {
    read: (file, exposure) => folder.read(path(file), exposure),
    create: (file, bytes, exposure) => folder.create(path(file), bytes, exposure),
    name: (file) => `${folder.path}/${path(file)}`,
  });
}

/** The same with a host that has no state folder: kept in its store, flat (lifecycles §8.5). */
export function storedSpaceFiles(store: SecretStore, space: Space): SpaceFiles {
  const key = (file: string) => `auth/${spaceFolder(space)}/${file.replace("/", ".")}`;
  return new SpaceFiles(space, {
    read: (file) => store.get(key(file)),
    create: (file, bytes) => store.create(key(file), bytes),
    name: key,
  });
}

const loopbackPath = (space: Space): string => `${spaceFolder(space)}/auth-service.json`;

/** Written once everything is bound; replaces what a killed process left behind. */
export async function announceLoopback(folder: Folder, space: Space, face: LoopbackFace): Promise<void> {
  await folder.replace(loopbackPath(space), loopbackDocument.encode(face), "secret");
}

export async function readLoopback(folder: Folder, space: Space): Promise<LoopbackFace | undefined> {
  const bytes = await folder.read(loopbackPath(space), "secret");
  return bytes && loopbackDocument.decode(`${folder.path}/${loopbackPath(space)}`, bytes);
}

/** At start and at stop. */
export async function withdrawLoopback(folder: Folder, space: Space): Promise<void> {
  await folder.remove(loopbackPath(space));
}
