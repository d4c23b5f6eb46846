/** Every number of the service in one table, with its unit and its reason. */

/** Wire limits (wire §3, §5, §6, §10). */
export const WIRE = {
  /** bytes of one subject */
  maxSubject: 1_024,
  /** bytes of one request body */
  maxBody: 65_536,
  /** nesting depth of a body */
  maxDepth: 32,
  /** characters of the `auth` slot */
  maxAuth: 8_192,
  /** ms a caller gives by default */
  defaultDeadlineMs: 15_000,
  /** ms above which a caller's deadline counts as this */
  maxDeadlineMs: 60_000,
  /** entries of `error.details`, and bytes of them together */
  maxDetails: 8,
  maxDetailBytes: 2_048,
  /** bytes of an observed run request's body */
  maxObservedBody: 16_384,
} as const;

/** Places in flight of one service in one process (wire §3, check 3). */
export const PLACES = {
  service: 256,
  /** of one owner other than `local` */
  owner: 16,
  /** of one gateway principal */
  gateway: 64,
  /** of one person behind a gateway, once known */
  person: 8,
  /** kept free for `local.*` other than gateways */
  reserved: 32,
  /** seconds a refused caller should wait */
  retryAfterSeconds: 1,
} as const;

/** Contract limits (wire §6), checked before anything is published. */
export const CONTRACT = {
  maxDocumentBytes: 262_144,
  maxClosureBytes: 1_048_576,
  maxDepth: 32,
  maxPattern: 256,
  maxArtifacts: 64,
  /** commands of one cluster document */
  maxCommands: 128,
} as const;

/** Members of requests and replies that have no grammar of their own, in characters or entries (operations). */
export const ARGUMENT = {
  runSubject: 1_024,
  served: 1_024,
  revokeReason: 1_024,
  stepKey: 1_024,
  actorToken: 4_096,
  sentinelCreds: 16_384,
  grantSig: 1_024,
  label: 128,
  /** entries of each of an actor's three lists */
  list: 64,
  /** entries of one side of a permission ceiling */
  patterns: 1_024,
  /** rows of one page of `actor-list`, and bytes of them: well inside a broker's `max_payload` of 1 MiB */
  page: 256,
  pageBytes: 524_288,
  url: 2_048,
  /** a commentary that another program wrote */
  note: 4_096,
  drainKey: 512,
  holder: 256,
} as const;

/** *store retry*: full jitter, doubling, inside the deadline (wire §10). */
export const STORE_RETRY = { firstMs: 10, maxMs: 500, tries: 20 } as const;
/** *peer wait*: full jitter, doubling (wire §10). */
export const PEER_WAIT = { firstMs: 250, maxMs: 15_000 } as const;
/** *rescan*: claim, unfinished barriers, drain, shape proof (wire §10). */
export const RESCAN_MS = 30_000;
/** ms for each thing that a manager publishes of itself. */
export const PUBLISH_MS = 15_000;
/** ms between looks at whether our connections have a broker. */
export const GUARD_MS = 500;
/** Polling a stage row while another replica runs the barrier. */
export const STAGE_POLL_MS = 250;

/** The store (state §1, §2). */
export const STORE = {
  readTimeoutMs: 5_000,
  /** before the same bytes are sent again; inside a request's deadline there is time for several */
  writeAttemptMs: 2_000,
  /** with less than this left no write is tried again */
  writeLeastMs: 100,
  maxBatch: 256,
  /** atomic batches in flight per process; the broker allows 50 per stream */
  batchesInFlight: 16,
  /** rows of one question read side by side */
  readsAtOnce: 32,
  /** scans of one question made side by side: each has a consumer */
  scansAtOnce: 8,
  scanBatch: 256,
  scanBatchMs: 5_000,
  scanInactivityMs: 30_000,
  scanRounds: 4_096,
  scanIdleRounds: 8,
  /** consumers made until one is beside the leader: on three servers each third is */
  scanPlacements: 32,
  /** a watch asks anew after this; what it missed is found by the rescan */
  watchPullMs: 10_000,
  /** an observation trails delivery by at most this */
  takeWaitMs: 2_000,
  takePollMs: 20,
  takeMaxAgeMs: 300_000,
  containBatch: 250,
} as const;

/** Lifetimes in seconds (state §5, identity §4, §7). */
export const LIFE = {
  standingTtlS: 900,
  minStandingTtlS: 5,
  maxStandingTtlS: 86_400,
  /** share of its life after which a credential is renewed */
  renewAt: 0.75,
  oneShotS: 300,
  operatorS: 60,
  sessionMaxS: 86_400,
  rootMs: 90 * 86_400_000,
  rootRenewFromMs: 60 * 86_400_000,
  /** what the services sign for themselves; re-signed at half-life */
  selfS: 900,
  bearerS: 900,
  managedBearerS: 300,
  /** what less than this remains of is not signed */
  minLeftS: 5,
  skewS: 5,
  terminalRowS: 30 * 86_400,
  issuedMs: 86_400_000,
  /** how much longer than what they describe inbox, issued and accepted rows live */
  rowMarginS: 60,
} as const;

/** Sizes of credentials (state §5). */
export const CREDENTIAL = {
  maxJwt: 16_384,
  /** characters of any JWT read; an authorization request quotes a CONNECT of up to `max_control_line` */
  maxReadJwt: 131_072,
} as const;

/** What a serving user may answer: each request once, within this many seconds (wire §9). */
export const ANSWER = { perRequest: 1, withinS: 120 } as const;

/** Files of the state folder (identity §1.1). */
export const SECRETS = { maxBytes: 1_048_576, maxDepth: 16 } as const;

/** Rotation of the bearer keys (identity §5). */
export const ISSUER = {
  maxKeys: 3,
  /** ms from `--next` to `--activate`: JWKS age 300 s, `trust` age 60 s, skew 5 s */
  activateAfterMs: 365_000,
  /** ms from its last signature to `--retire`: JWKS age 300 s, longest bearer 900 s, skew 5 s */
  retireAfterMs: 1_205_000,
} as const;

/** Every NATS connection of ours. */
export const CONNECTION = {
  /** ms between pings; a dead peer is noticed after two missing answers (pitfalls 1) */
  pingIntervalMs: 15_000,
  maxPingOut: 2,
  /** bytes of one protocol line that a broker must take: a CONNECT with a bearer and a user JWT (identity §1.4) */
  controlLine: 65_536,
  /** ms until a broker must have admitted us; its own authorization timeout is 5 s */
  connectMs: 10_000,
  /** ms between tries to reconnect, and what is added at random */
  reconnectMs: 250,
  reconnectJitterMs: 250,
  /** ms a connection has for handing over what it still holds when it is closed */
  drainMs: 2_000,
} as const;

/** Stopping (wire §9, lifecycles §8). */
export const STOP = { drainMs: 15_000, brokerLostMs: 120_000, gatewayFinishMs: 10_000, claimReleaseMs: 3_000 } as const;

/** The process that hosts services (lifecycles §8). */
export const HOST = {
  /** ms between reads of `public.json` for a provisioned user under another uid (identity §1.1) */
  usersMs: 5_000,
  /** ms between looks at whether the services are ready */
  lookMs: 250,
  /** ms for which a start tries again for want of broker or store, before it gives up (§8.4) */
  storeWaitMs: 60_000,
} as const;

/** The command line. */
export const CLI = {
  /** ms for which a revoke asks again until its retirement is confirmed, and ms between */
  retireMs: 120_000,
  againMs: 1_000,
  /** ms for which answers of unknown number are gathered */
  gatherMs: 700,
} as const;

/** The development launcher and its supervisor (lifecycles §8.4). */
export const LAUNCH = {
  /** ms a process has to become ready; what waits for a store gives up by itself, sooner */
  readyMs: 90_000,
  /** ms between SIGTERM and SIGKILL */
  stopMs: 30_000,
  /** ms within which two signals are one */
  oneSignalMs: 500,
  /** wait before a restart */
  restart: { firstMs: 250, maxMs: 5_000 },
  /** more restarts of one process than this within the window stop everything */
  maxRestarts: 4,
  crashWindowMs: 60_000,
  /** ms between looks at what cannot tell by itself that it is ready */
  probeMs: 25,
} as const;

/** Managers and agents (operations §6, §8). */
export const MANAGER = { gatesPerOwner: 64, goalEntries: 4_096, uidTries: 4, activationTries: 3 } as const;

/** Assignments (operations §11): ms that a supervisor's may be ahead; commits decided again when rows moved. */
export const ASSIGNMENT = { maxAheadMs: 30 * 86_400_000, tries: 3 } as const;

/** Root renewals (operations §10): commits decided again when rows moved. */
export const RENEWAL = { tries: 3 } as const;

/** Maintenance (operations §7): ms kept for the answer when the custodian's does not come. */
export const MAINTENANCE = { answerMs: 250 } as const;

/** The custodian (lifecycles §2). */
export const CUSTODIAN = {
  /** replies collected and servers walked; more make a sweep incomplete */
  maxServers: 1_024,
  discoverQuietMs: 300,
  discoverMinMs: 500,
  discoverMaxMs: 3_000,
  connzLimit: 65_536,
  connzTimeoutMs: 10_000,
  connzTries: 2,
  kickTimeoutMs: 2_000,
  kicksInFlight: 16,
  afterKickMs: 3_000,
  evictRounds: 3,
  maxTargets: 4_096,
  /** principals of one request */
  targetsPerRequest: 256,
  /** characters of a note */
  maxNote: 256,
  settleBaseMs: 1_000,
  askReadMs: 30_000,
  askEvictMs: 45_000,
  /** ms between log lines that tell the age of the system credential */
  tellAgeMs: 86_400_000,
} as const;

/** Identity providers (identity §2). */
export const IDP = {
  /** providers of one space */
  maxPins: 8,
  maxToken: 8_192,
  fetchMs: 5_000,
  maxJwks: 65_536,
  /** ms that fetched keys are used for; never longer, whatever happens to the provider */
  keepMs: 300_000,
  /** ms between fetches for an unknown `kid` */
  cooldownMs: 30_000,
  /** ms after a failed fetch until the next one, so that a provider in trouble is not asked once per request */
  failedMs: 1_000,
  minRsaBits: 2_048,
  /** seconds that a proof may still be valid for */
  maxAheadS: 86_400,
  maxSubject: 255,
  /** seconds that a development token lives (identity §12) */
  developmentTokenS: 300,
} as const;

/** Bearers and their issuer (identity §4, §5). */
export const BEARER = {
  maxToken: 16_384,
  /** entries of each list of an actor row (operations §10) */
  maxScopes: 64,
  /** ms that a verifier keeps `trust` for, and ms between re-reads for an unknown `kid` */
  trustMs: 60_000,
  rereadMs: 5_000,
  /** ms between looks at `issuer.json` and `trust` */
  issuerMs: 30_000,
  /** seconds that others may keep a published JWKS, and the discovery bundle */
  jwksAgeS: 300,
  discoveryAgeS: 60,
  /** hops of an attenuation walk (identity §6) */
  maxHops: 16,
} as const;

/** The auth callout (identity §9). */
export const CALLOUT = {
  atOnce: 32,
  turnMs: 3_000,
  serverKeys: 64,
  /** ms from arrival to answer; the broker waits 5 s and ignores a later one */
  answerMs: 4_500,
  /** new generations of one incarnation at once, ms for one more, and how many incarnations are remembered */
  issuedBurst: 60,
  issuedEveryMs: 6_000,
  issuedBuckets: 4_096,
  /** ms for reading `trust`, which every connect may be waiting for */
  trustReadMs: 2_000,
} as const;

/** The gateway (identity §11). */
export const GATEWAY = {
  maxBody: 65_536,
  inFlight: 64,
  peerInFlight: 8,
  sockets: 256,
  bodyMs: 10_000,
  replyMs: 15_000,
  managerReplyMs: 60_000,
  /** ms for the head of a request, and between looks at those that are late */
  headMs: 10_000,
  checkMs: 1_000,
  refusalsPerMinute: 30,
  refusalWindowMs: 60_000,
  peers: 1_024,
  /** ms within which exchange must answer for the gateway to be ready */
  readyMs: 15_000,
  /** seconds that a refused client should wait */
  retryAfterS: 1,
} as const;

/** The durables of an incarnation (lifecycles §1.1): seconds until an unacknowledged message comes again. */
export const MAILBOX = { ackWaitS: 60 } as const;

/** Issuing (operations §4): ms after which what no fence guards is looked at once more before the commit. */
export const ISSUE = { freshMs: 100 } as const;

/** Runs (operations §5). */
export const RUNS = {
  /** ms that an attempt waits for the eviction of earlier ones */
  evictMs: 10_000,
  /** instances whose rows are remembered by the run they are of */
  rememberedInstances: 1_024,
  /** looks at a pair of which one row was seen */
  pairTries: 3,
} as const;

/** Registration of `auth` (wire §8): ms for one try of the ceremony, which waits for an eviction, and for one step. */
export const REGISTRATION = { ceremonyMs: 60_000, stepMs: 15_000 } as const;

/** Barriers, draining and the plane claim (lifecycles §1 to §5). */
export const BARRIER = {
  /** retirements under way on the holder of the claim */
  atOnce: 8,
  /** ms for one step of a retirement, and for one try for the claim */
  stepMs: 60_000,
  /** ms before its deadline at which a caller is told that the retirement is not confirmed */
  tellMs: 1_000,
  /** principals that a stage row names: more would not fit into one row */
  reported: 512,
  /** whole scans of a lifecycle's obligations within one draining */
  drainPasses: 8,
  /** rows that a refusal names, and characters of their keys together: details are bounded (wire §5) */
  blockedRows: 8,
  blockedChars: 1_200,
  /** ms for which what may be missed is tried: the eviction of an ended instance */
  endEvictMs: 30_000,
} as const;
