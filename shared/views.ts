/** What a bearer's view asks for and where it may be asked for, as one table (identity §4). */
import Type from "typebox";
import { LIFE } from "./limits.ts";

/** The two doors of the gateway. */
export type Face = "public" | "loopback";

/** The claim that a view cannot do without, and that nothing but this view may carry. */
export type Pairing = "managerInstanceId" | "session" | "transferWriter";

export interface ViewRule {
  /** What the actor row must hold beyond being active. */
  readonly scope?: "admin" | "spawn" | "supervise";
  readonly faces: readonly Face[];
  /** Whether a managed actor may have it, too. */
  readonly managed: boolean;
  readonly pairing?: Pairing;
  /** The longest life of such a bearer in seconds. */
  readonly capS: number;
}

const both = ["public", "loopback"] as const;
const loopback = ["loopback"] as const;

const view = (rule: Partial<ViewRule> & Pick<ViewRule, "faces">): ViewRule =>
  Object.freeze({ managed: false, capS: LIFE.bearerS, ...rule });

const table = {
  "manager-caller": view({ faces: both, managed: true, pairing: "managerInstanceId" }),
  // The grant is the authority: no scope is asked for.
  "session-caller": view({ faces: both, pairing: "session" }),
  "channel-writer": view({ faces: both, scope: "admin" }),
  "channel-purger": view({ faces: both, scope: "admin" }),
  "transfer-writer": view({ faces: both, scope: "admin", pairing: "transferWriter", capS: LIFE.managedBearerS }),
  admin: view({ faces: loopback, scope: "admin" }),
  purger: view({ faces: loopback, scope: "admin" }),
  deployer: view({ faces: loopback, scope: "spawn" }),
  // Typed operations replace it: known, and served on no face.
  "manager-service": view({ faces: [], scope: "supervise" }),
} as const satisfies Record<string, ViewRule>;

export type View = keyof typeof table;

export const VIEWS: Readonly<Record<View, ViewRule>> = table;

const VIEW_NAMES = Object.keys(table) as readonly View[];

/** The closed enumeration. */
export const ViewSchema = Type.Unsafe<View>({ type: "string", enum: [...VIEW_NAMES] });

/** A bearer without a view: the profile `agent`. */
const agent = view({ faces: both, managed: true });

export const viewRule = (name: View | undefined): ViewRule => (name === undefined ? agent : table[name]);

/** The longest life in seconds of a bearer with this view; a managed actor's is short in any. */
export const bearerCapS = (name: View | undefined, managed: boolean): number =>
  managed ? Math.min(LIFE.managedBearerS, viewRule(name).capS) : viewRule(name).capS;
