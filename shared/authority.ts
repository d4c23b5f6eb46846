/**
 * The authority as a manager or another service asks it: one function per operation of `auth`, over NATS.
 *
 * ```ts
 * import { authority } from "./shared/authority.ts";
 * import { systemPorts } from "./shared/ports.ts";
 *
 * const ask = authority({ connection, space, caller, inboxPrefix, name: "my-manager", ports: systemPorts });
 * const listed = await ask.actorList({ requestId }, { deadlineMs: 5_000 });
 * if (listed.ok) console.log(listed.data.actors.length);
 * else console.log(`${listed.error.code}, ${listed.error.outcome}: ${listed.error.message}`);
 * ```
 *
 * Arguments and data are typed by the operation's declaration. A refusal is a value, never thrown: its code is one of
 * a closed set, and its outcome says what became of the request. What certainly changed nothing is asked again by
 * itself inside the deadline (15 s unless told); a caller repeats the rest under the same `requestId`.
 *
 * Before it has credentials a manager asks the same functions over HTTP: `manager-http.ts`.
 */
import { AuthorityClient, type CallOptions, type ClientOptions } from "./client.ts";
import { authApi } from "./contracts/auth.ts";
import { type Calls, callsOf } from "./result.ts";

export type Authority = Calls<typeof authApi, CallOptions>;

/** On a connection that may publish these requests; each is refused by the broker or the authority otherwise. */
export function authority(options: ClientOptions): Authority {
  const client = new AuthorityClient(options);
  return callsOf(authApi, (operation, args, of: CallOptions = {}) => client.call(operation, args, of));
}
