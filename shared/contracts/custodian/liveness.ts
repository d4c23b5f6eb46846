/** What a sweep says about one connection or principal (lifecycles §2). */
import Type from "typebox";
import { SafeInteger } from "../../envelope.ts";
import { ServerNkey, UserNkey } from "../../tokens.ts";
import { Closed } from "../operation.ts";

/** `unknown` never counts as `gone`. */
export const Liveness = Type.Enum(["live", "gone", "unknown"]);

/** One connection: server ids and cids are never reused. */
export const ConnectionTuple = Closed({ serverId: ServerNkey.schema, cid: SafeInteger(), userNkey: UserNkey.schema });

export const TupleVerdict = Closed({ tuple: ConnectionTuple, state: Liveness });
