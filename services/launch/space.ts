/** The space that the launcher runs: made at the first start, kept afterwards, on the ports that were asked for. */
import { canonicalText } from "../../shared/canonical.ts";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { AuthorityError } from "../../shared/errors.ts";
import type { Ports } from "../../shared/ports.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { type Folder, openFolder } from "../../shared/secrets/folder.ts";
import { type SpaceSettings, settingsDocument, spaceFiles } from "../../shared/secrets/settings.ts";
import { chooseSpace, spacesIn } from "../../shared/secrets/spaces.ts";
import { spaceFolder } from "../../shared/secrets/store.ts";
import { Space } from "../../shared/tokens.ts";
import { developmentPin } from "../dev-idp/provider.ts";
import { initSpace } from "../offline/init.ts";

const DEVELOPMENT_SPACE = Space.parse("dev");
const BROKER_PORT = 4_222;
const GATEWAY_PORT = 4_280;

export interface SpaceOptions {
  readonly stateDir: string;
  readonly space?: string | undefined;
  readonly brokerPort?: number | undefined;
  /** Of the loopback face. */
  readonly gatewayPort?: number | undefined;
  readonly ports: Ports;
}

export interface LaunchedSpace {
  readonly space: Space;
  readonly settings: SpaceSettings;
  readonly created: boolean;
  /** Absent where the space believes no development provider. */
  readonly idpPort?: number;
  readonly brokerPort: number;
}

/**
 * A development space: `dev`, made where the folder holds none; else the only one there is. The port of its identity
 * provider is part of every owner's name, so it stays as it was; the others move to where they are asked for.
 */
export async function developmentSpace(options: SpaceOptions): Promise<LaunchedSpace> {
  const { stateDir, ports } = options;
  const folder = await openFolder(stateDir, { make: true, ports });
  const present = await spacesIn(folder);
  const dev = present.length === 0 || present.includes(DEVELOPMENT_SPACE);
  const space = dev ? DEVELOPMENT_SPACE : await chooseSpace(folder, undefined);
  const before = present.length === 0 ? undefined : await settingsOf(folder, space);
  if (before && !before.development) {
    throw new AuthorityError(
      "failed-precondition",
      `space ${space} in ${stateDir} is not for development: run it with \`mesh-authority up\`, or name another --state`,
    );
  }
  const settings = movedTo(options, before);
  const idpPort = settings.gateway.loopbackPort + 2;
  const pins = [developmentPin(`http://127.0.0.1:${idpPort}`)];
  const made = await initSpace({ stateDir, space, permissionsOf, ports, settings, pins });
  if (before && canonicalText(before) !== canonicalText(settings)) {
    await folder.replace(
      `${spaceFolder(space)}/space.json`,
      settingsDocument.encode(settings as SpaceSettings),
      "public",
    );
  }
  return launched(folder, space, made.created);
}

/** A space that `init` made, as it is. */
export async function existingSpace({ stateDir, space: named }: SpaceOptions): Promise<LaunchedSpace> {
  const folder = await openFolder(stateDir);
  return launched(folder, await chooseSpace(folder, named), false);
}

async function launched(folder: Folder, space: Space, created: boolean): Promise<LaunchedSpace> {
  const settings = await settingsOf(folder, space);
  const { pins } = await spaceFiles(folder, space).pins();
  const pin = settings.development && pins.find(({ development }) => development);
  return {
    space,
    settings,
    created,
    brokerPort: portOf(settings.broker.advertised),
    ...(pin ? { idpPort: portOf(pin.url) } : {}),
  };
}

async function settingsOf(folder: Folder, space: Space): Promise<SpaceSettings> {
  const { identity } = await directoryStore(folder.path, []);
  return spaceFiles(folder, space).settings(identity);
}

type Fresh = Omit<SpaceSettings, "ver" | "space" | "storeIdentity">;

/** What is asked for, else what was, else the defaults. */
function movedTo({ brokerPort, gatewayPort }: SpaceOptions, before: SpaceSettings | undefined): Fresh {
  const broker = brokerPort ?? (before ? portOf(before.broker.advertised) : BROKER_PORT);
  const loopbackPort = gatewayPort ?? before?.gateway.loopbackPort ?? GATEWAY_PORT;
  const publicPort = loopbackPort + 1;
  return {
    ...before,
    development: true,
    broker: { tlsRequired: false, ...before?.broker, advertised: `nats://127.0.0.1:${broker}` },
    gateway: { ...before?.gateway, loopbackPort, publicPort, publicUrl: `http://127.0.0.1:${publicPort}` },
  };
}

const portOf = (url: string): number => Number(new URL(url).port);
