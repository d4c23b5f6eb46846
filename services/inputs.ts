/** What a program gives that embeds the authority, checked before anything else happens (lifecycles §8.5). */
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { AuthorityError } from "../shared/errors.ts";
import { LIFE } from "../shared/limits.ts";
import { type SecretStore, STORE_IDENTITY } from "../shared/secrets/store.ts";
import { AccountNkey, Space, Uid } from "../shared/tokens.ts";
import { type HostedService, SERVICES } from "./service.ts";

const closed = { additionalProperties: false } as const;
const Port = Type.Integer({ minimum: 1, maximum: 65_535 });
const Server = Type.String({ minLength: 1, maxLength: 256 });
const Url = Type.String({ maxLength: 2_048, pattern: "^https?://" });

const Inputs = Type.Object(
  {
    context: Type.Object({ accountPublicKey: AccountNkey.schema, lifecycleUid: Uid.schema }, closed),
    space: Space.schema,
    servers: Type.Union([Server, Type.Array(Server, { minItems: 1, maxItems: 64 })]),
    storeIdentity: Type.String({ pattern: STORE_IDENTITY.source }),
    stateDir: Type.Optional(Type.String({ minLength: 1 })),
    instance: Type.Optional(Type.String({ pattern: "^[a-z0-9-]{1,32}$" })),
    services: Type.Optional(Type.Array(Type.Enum([...SERVICES]), { minItems: 1, uniqueItems: true })),
    port: Type.Optional(Port),
    publicFace: Type.Optional(
      Type.Object(
        {
          port: Port,
          url: Url,
          trustedProxy: Type.Optional(Type.Boolean()),
          advertisedServer: Type.Optional(Server),
          agentProvisioningUrl: Type.Optional(Type.String({ maxLength: 2_048, pattern: "^https://" })),
        },
        closed,
      ),
    ),
    standingRenewableTtlSeconds: Type.Optional(
      Type.Integer({ minimum: LIFE.minStandingTtlS, maximum: LIFE.maxStandingTtlS }),
    ),
  },
  closed,
);

export type AuthServiceInputs = Omit<Static<typeof Inputs>, "services"> & {
  readonly services?: readonly HostedService[];
  /** Where the secrets are. A view of it is all that each service sees. */
  readonly store: SecretStore;
};

const shape = Compile(Inputs);
const DEFAULT_SERVICES: readonly HostedService[] = ["auth", "exchange", "callout"];

export interface CheckedInputs extends AuthServiceInputs {
  readonly services: readonly HostedService[];
}

/** `bad-request` for what is malformed, unknown or may not be together; `failed-precondition` for another store. */
export function checkInputs(inputs: AuthServiceInputs): CheckedInputs {
  const { store, ...plain } = inputs;
  if (!shape.Check(plain)) {
    const [error] = shape.Errors(plain);
    throw new AuthorityError("bad-request", `input ${error?.instancePath || "/"} ${error?.message ?? "does not fit"}`);
  }
  if (!isStore(store)) throw new AuthorityError("bad-request", "input /store is no secret store");
  const services = inputs.services ?? DEFAULT_SERVICES;
  if (services.includes("custodian") && services.length > 1) {
    throw new AuthorityError("bad-request", "custodian runs alone: no process holds a signing key and system rights");
  }
  if (inputs.publicFace && inputs.port === undefined) {
    throw new AuthorityError("bad-request", "publicFace needs port");
  }
  if (store.identity !== inputs.storeIdentity) {
    throw new AuthorityError("failed-precondition", "storeIdentity is not the store's identity");
  }
  return { ...inputs, services };
}

const isStore = (value: unknown): value is SecretStore =>
  typeof value === "object" && value !== null && ["get", "create", "put"].every((call) => isMethod(value, call));

const isMethod = (value: object, name: string): boolean => typeof Reflect.get(value, name) === "function";
