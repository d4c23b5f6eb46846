/** The one ownership matrix: profile → rows. Every permission there is comes from here (state §6). */
import { agent } from "./profiles/agent.ts";
import { endpointServe } from "./profiles/endpoint-serve.ts";
import {
  executor,
  goalWriter,
  retirementRequester,
  sessionLedger,
  sessionServing,
  supervisor,
  transferReader,
} from "./profiles/manager.ts";
import { managerCaller } from "./profiles/manager-caller.ts";
import {
  admin,
  channelPurger,
  channelWriter,
  deployer,
  purger,
  sessionCaller,
  transferWriter,
} from "./profiles/person.ts";
import type { Profile } from "./profiles/profile.ts";
import {
  callout,
  custodianSystem,
  exchangeStore,
  gateway,
  operator,
  operatorCallout,
  platformHost,
  service,
} from "./profiles/provisioned.ts";
import { runDriver, runMediator, runOperator } from "./profiles/run.ts";
import { scan, serviceServe, store, work } from "./profiles/self.ts";

const matrix = {
  agent,
  admin,
  "manager-caller": managerCaller,
  "session-caller": sessionCaller,
  "transfer-writer": transferWriter,
  "channel-writer": channelWriter,
  "channel-purger": channelPurger,
  purger,
  deployer,
  supervisor,
  executor,
  "endpoint-serve": endpointServe,
  "goal-writer": goalWriter,
  "session-ledger": sessionLedger,
  "session-serving": sessionServing,
  "transfer-reader": transferReader,
  "retirement-requester": retirementRequester,
  "run-driver": runDriver,
  "run-mediator": runMediator,
  "run-operator": runOperator,
  gateway,
  operator,
  "operator-callout": operatorCallout,
  "platform-host": platformHost,
  "service-serve": serviceServe,
  service,
  "exchange-store": exchangeStore,
  "custodian-system": custodianSystem,
  callout,
  work,
  store,
  scan,
} as const;

export type ProfileName = keyof typeof matrix;
/** What a profile's rows depend on: the holder, and what the profile names beyond it. */
export type Bindings<N extends ProfileName> = Parameters<(typeof matrix)[N]["rows"]>[0];

export const PROFILES: { readonly [N in ProfileName]: Profile<Bindings<N>> } = matrix;
export const PROFILE_NAMES = Object.keys(matrix) as readonly ProfileName[];
