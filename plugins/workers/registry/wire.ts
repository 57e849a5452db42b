/** Schemas of the worker routes, used for validation, types and OpenAPI. */
import { type ModelCard, type Static, Type } from '#kernel'
import { nullable } from '#shared'

const U32_MAX = 4_294_967_295

export const u32 = (options: { description?: string } = {}) =>
  Type.Integer({ minimum: 0, maximum: U32_MAX, ...options })
export const wholeSeconds = (description?: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, ...(description && { description }) })

export const WorkerType = Type.Enum(['regular', 'prefill', 'decode'])
const RequestedMode = Type.String({ maxLength: 64 })
const MODE_IS_CHECKED =
  'A connection mode of an enabled plugin, such as http. Checked only: the URL scheme decides.'
/** Name that a plugin registers for a connection mode, engine or API format. */
export const PluginName = Type.String({ pattern: '^[a-z][a-z0-9_-]{0,63}$' })
const WorkerStatus = Type.Enum(['pending', 'ready', 'not_ready', 'failed', 'draining', 'drained'])
/** JSON numbers such as 1e999 are not finite. */
export const Cost = Type.Number({ minimum: 0, maximum: Number.MAX_VALUE })
export const Labels = Type.Record(Type.String(), Type.String())
export const ApiKey = Type.String({
  minLength: 1,
  pattern: '^[\\x21-\\x7e]+$',
  secret: true,
  description: 'Sent to the worker as a bearer token instead of the client’s key. Never returned.',
})

export const HealthSchema = Type.Object({
  timeout_secs: nullable(wholeSeconds('Timeout of one probe, seconds. 0: the setting of the gateway.')),
  check_interval_secs: nullable(
    wholeSeconds('Interval between probes, seconds. 0: the setting of the gateway.'),
  ),
  success_threshold: nullable(u32({ description: 'Consecutive successful probes to become ready.' })),
  failure_threshold: nullable(u32({ description: 'Consecutive failed probes to become not_ready.' })),
  disable_health_check: nullable(
    Type.Boolean({ description: 'Sends no probes; the worker counts as ready.' }),
  ),
  drain_settle_secs: nullable(wholeSeconds('Longest time in status draining, seconds. 0 removes at once.')),
})
export type HealthWire = Static<typeof HealthSchema>

/** Other members are stored and returned unchanged. */
export const ModelCardSchema = Type.Object(
  {
    id: Type.String({ minLength: 1 }),
    display_name: nullable(Type.String()),
    aliases: nullable(Type.Array(Type.String())),
    model_type: nullable(
      Type.Union([Type.Array(Type.String()), u32()]),
      'Capabilities of the model, as names or as one number of their bits.',
    ),
    context_length: nullable(u32({ description: 'Tokens.' })),
    tokenizer_path: nullable(Type.String()),
    chat_template: nullable(Type.String()),
    reasoning_parser: nullable(Type.String()),
    tool_parser: nullable(Type.String()),
  },
  { additionalProperties: true },
)
/** A model card as received. */
export interface ModelCardWire {
  readonly id: string
  readonly model_type?: readonly string[] | number | null
  readonly [key: string]: unknown
}

/** Longest delay of a timer, seconds. */
const TIMER_SECS_MAX = 2_147_483
const timerSecs = (description: string) =>
  nullable(Type.Integer({ minimum: 0, maximum: TIMER_SECS_MAX }), description)
const timerMs = (description: string) =>
  nullable(Type.Integer({ minimum: 0, maximum: TIMER_SECS_MAX * 1_000 }), description)
const threshold = (description: string) =>
  nullable(Type.Integer({ minimum: 1, maximum: U32_MAX }), description)

export const HttpPoolSchema = Type.Object({
  pool_max_idle_per_host: nullable(u32(), 'Idle connections kept per thread.'),
  pool_idle_timeout_secs: timerSecs('Closes idle connections after this many seconds.'),
  timeout_secs: timerSecs('Limit of the whole exchange including a streamed body, seconds. 0: no limit.'),
  connect_timeout_secs: timerSecs('Limit for connecting, seconds. 0: no limit.'),
  head_timeout_secs: timerSecs(
    'Limit from sending the request to the response head, if the client requested no stream, seconds. 0: no limit.',
  ),
  first_token_timeout_secs: timerSecs(
    'Limit from sending the request to the first byte of a streamed body, seconds. 0: no limit.',
  ),
})
export type HttpPoolWire = Static<typeof HttpPoolSchema>

export const ResilienceSchema = Type.Object({
  max_retries: threshold('Attempts in total, including the first.'),
  initial_backoff_ms: timerMs('Backoff before the second attempt, milliseconds.'),
  max_backoff_ms: timerMs('Longest backoff between attempts, milliseconds; at least initial_backoff_ms.'),
  max_wait_ms: timerMs('Longest Retry-After of this worker that is honored, milliseconds.'),
  backoff_multiplier: nullable(
    Type.Number({ minimum: 1, maximum: 1_000 }),
    'Factor by which each backoff grows.',
  ),
  jitter_factor: nullable(
    Type.Number({ minimum: 0, maximum: 1 }),
    'Share by which a backoff varies at most.',
  ),
  disable_retry: nullable(Type.Boolean(), 'One attempt only.'),
  cb_failure_threshold: threshold('Consecutive failures that open the circuit breaker.'),
  cb_success_threshold: threshold('Consecutive successes that close it.'),
  cb_timeout_secs: timerSecs('Time that it stays open before a request tries the worker, seconds.'),
  cb_window_secs: nullable(
    u32(),
    'Stored and returned only; the breaker counts consecutive failures, without a window.',
  ),
  disable_circuit_breaker: nullable(Type.Boolean(), 'Disables the circuit breaker.'),
  retryable_status_codes: nullable(
    Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), { maxItems: 200 }),
    'Statuses of this worker that count as failures and may be retried.',
  ),
})
export type ResilienceWire = Static<typeof ResilienceSchema>

const IS_DRAINED = 'True: no new requests; those in flight finish, and health checks continue. Default false.'

/** Body of POST and PUT, and an entry of `plugins.workers.workers`. */
export const WorkerSpecSchema = Type.Object({
  url: Type.String({
    description: 'Base URL: http, https, grpc or grpcs. Its scheme decides the connection mode.',
  }),
  worker_type: nullable(WorkerType, 'Default regular.'),
  connection_mode: nullable(RequestedMode, MODE_IS_CHECKED),
  runtime_type: nullable(PluginName, 'Default unspecified, which requests detection.'),
  runtime: nullable(PluginName, 'Alias of runtime_type; give only one of them.'),
  models: nullable(
    Type.Array(ModelCardSchema),
    'Absent: discovered. An empty list is a wildcard: the worker serves any model.',
  ),
  api_key: nullable(ApiKey),
  priority: nullable(u32({ description: 'Higher is preferred. Default 50.' })),
  cost: nullable(Cost, 'Lower is preferred among equal priorities. Default 1.'),
  drained: nullable(Type.Boolean(), IS_DRAINED),
  labels: nullable(Labels),
  health: nullable(HealthSchema),
  provider: nullable(
    Type.String(),
    'Cloud service of the worker: openai, anthropic, gemini, xai or another name. Decides parameters and credentials, and without runtime_type makes the worker external. Default: derived from the host of an external worker.',
  ),
  apis: nullable(
    Type.Array(PluginName, { maxItems: 32 }),
    'Formats that the worker accepts unchanged: chat, completions, messages, responses and others. Default: discovered.',
  ),
  bootstrap_port: nullable(
    Type.Integer({ minimum: 0, maximum: 65_535 }),
    'Port of a prefill worker where decode workers fetch KV blocks. 0: none.',
  ),
  bootstrap_host: nullable(
    Type.String({ minLength: 1 }),
    'Host of bootstrap_port. Default: the host of the URL.',
  ),
  http_pool: nullable(
    HttpPoolSchema,
    'Connection settings of this worker; absent members use the settings of the gateway.',
  ),
  resilience: nullable(
    ResilienceSchema,
    'Retries and circuit breaker of this worker; absent members use the settings of the gateway.',
  ),
  max_connection_attempts: nullable(u32({ description: 'Stored and returned only. Default 20.' })),
  load_monitor_interval_secs: timerSecs(
    'Interval at which the engine is polled for its load, seconds; the smallest value among the workers of a model applies. 0: the setting of the gateway.',
  ),
})
export type WorkerSpecWire = Omit<Static<typeof WorkerSpecSchema>, 'models'> & {
  readonly models?: readonly ModelCardWire[] | null
}

/** Body of PATCH; absent members stay unchanged. */
export const WorkerPatchSchema = Type.Object({
  connection_mode: nullable(RequestedMode, MODE_IS_CHECKED),
  priority: nullable(u32()),
  cost: nullable(Cost),
  drained: nullable(Type.Boolean(), IS_DRAINED),
  labels: nullable(Labels, 'Merged key by key; keys cannot be removed.'),
  api_key: nullable(ApiKey, 'Replaces the key; it cannot be cleared.'),
  health: nullable(HealthSchema, 'Merged field by field.'),
})
export type WorkerPatchWire = Static<typeof WorkerPatchSchema>

/** Status of the latest change of a worker. */
const JobStatusSchema = Type.Object({
  job_type: Type.Enum(['AddWorker', 'UpdateWorker', 'RemoveWorker']),
  worker_url: Type.String(),
  status: Type.Enum(['pending', 'processing', 'failed']),
  message: Type.Union([Type.String(), Type.Null()], { description: 'Why it failed, or what blocks it.' }),
  timestamp: Type.Integer({ description: 'Unix seconds of the last change of status.' }),
})

const Average = (description: string) => Type.Union([Type.Number(), Type.Null()], { description })

/** Attempts since the registration, over all threads; those that a client cancelled are not counted. */
const WorkerTrafficSchema = Type.Object(
  {
    requests: Type.Integer({ description: 'Attempts, including those that failed.' }),
    failures: Type.Object({
      answered: Type.Integer({
        description: 'With an error status that counts as a failure, or a wrong format.',
      }),
      silent: Type.Integer({ description: 'Without a response, or with an incomplete one.' }),
      unreachable: Type.Integer({ description: 'Without a connection.' }),
    }),
    failure_share: Type.Number({
      description: 'Share of the recent attempts that failed, 0 to 1; a moving average.',
    }),
    is_stalled: Type.Boolean({
      description: 'True if a stream waits for a byte and no stream of the worker receives any.',
    }),
    duration_ms: Average('Moving average of successful attempts, milliseconds; null before the first.'),
    ttft_ms: Average('The same until the first byte of the body.'),
    last_error: Type.Union([Type.String(), Type.Null()], {
      description: 'Status and beginning of the body of the last failed attempt, without credentials.',
    }),
    last_error_at: Type.Union([Type.Integer(), Type.Null()], { description: 'Unix seconds.' }),
  },
  { description: 'Attempts of this gateway at the worker; absent until the registration is finished.' },
)
export type WorkerTraffic = Static<typeof WorkerTrafficSchema>

const Reported = <T extends Parameters<typeof Type.Union>[0][number]>(type: T) =>
  Type.Union([type, Type.Null()])

const EngineViewSchema = Type.Object(
  {
    running: Reported(Type.Integer({ description: 'Requests that the engine runs.' })),
    waiting: Reported(Type.Integer({ description: 'Requests in the queue of the engine.' })),
    kv_usage: Reported(Type.Number({ description: 'KV cache in use, 0 to 1.' })),
    cache_hit_rate: Reported(
      Type.Number({ description: 'Prompt tokens found in the prefix cache, 0 to 1.' }),
    ),
  },
  {
    description:
      'Last report of the engine; members are null that it does not report. Absent while engines are not polled: that needs `engineMetrics`, `overload` or a policy that reads the load.',
  },
)
export type EngineView = Static<typeof EngineViewSchema>

export const WorkerRecordSchema = Type.Object(
  {
    id: Type.String({ description: 'UUID.' }),
    model_id: Type.Optional(Type.String({ description: 'First model; absent for a wildcard worker.' })),
    url: Type.String(),
    models: Type.Optional(Type.Array(ModelCardSchema, { description: 'Absent for a wildcard worker.' })),
    worker_type: WorkerType,
    connection_mode: PluginName,
    runtime_type: PluginName,
    labels: Type.Optional(Labels),
    priority: u32(),
    cost: Type.Number(),
    drained: Type.Optional(
      Type.Boolean({ description: 'Its status is `drained` while it is healthy. Absent: not drained.' }),
    ),
    max_connection_attempts: u32(),
    health: Type.Object({
      timeout_secs: Type.Number(),
      check_interval_secs: Type.Number(),
      success_threshold: Type.Integer(),
      failure_threshold: Type.Integer(),
      disable_health_check: Type.Boolean(),
      drain_settle_secs: Type.Number(),
    }),
    provider: Type.Optional(Type.String({ description: 'Cloud service of an external worker.' })),
    apis: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'API formats that the worker takes, configured or found; others are translated or rejected.',
      }),
    ),
    bootstrap_port: Type.Optional(Type.Integer()),
    bootstrap_host: Type.Optional(Type.String()),
    http_pool: Type.Optional(HttpPoolSchema),
    resilience: Type.Optional(ResilienceSchema),
    load_monitor_interval_secs: Type.Optional(Type.Integer()),
    dp_base_url: Type.Optional(
      Type.String({ description: 'URL of the engine, if the worker is one of its data-parallel ranks.' }),
    ),
    dp_rank: Type.Optional(Type.Integer({ description: '0-based.' })),
    dp_size: Type.Optional(Type.Integer({ description: 'Number of ranks of that engine.' })),
    is_healthy: Type.Boolean({ description: 'True if status is ready.' }),
    status: WorkerStatus,
    status_reason: Type.Optional(
      Type.String({ description: 'Why the last health probe failed; absent if it did not.' }),
    ),
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'What an operator should correct, such as a rejected `api_key`; absent if there is nothing.',
      }),
    ),
    load: Type.Integer({ description: 'Requests of this gateway that are in flight.' }),
    engine: Type.Optional(EngineViewSchema),
    breaker: Type.Optional(
      Type.Enum(['closed', 'open', 'half_open'], {
        description: 'State of the circuit breaker; absent until the registration is finished.',
      }),
    ),
    traffic: Type.Optional(WorkerTrafficSchema),
    job_status: Type.Optional(JobStatusSchema),
  },
  { additionalProperties: true },
)
export type WorkerRecord = Omit<Static<typeof WorkerRecordSchema>, 'models'> & {
  readonly models?: readonly ModelCard[]
}

const ByStatus = Type.Record(Type.String(), Type.Integer(), {
  description: 'Number of workers by status; those with none are absent.',
})

/** Response of GET /workers; the counts are of the filtered workers of all pages. */
export const WorkerListSchema = Type.Object({
  workers: Type.Array(WorkerRecordSchema),
  total: Type.Integer(),
  has_more: Type.Boolean({ description: 'Whether more workers follow.' }),
  last_id: Type.Union([Type.String(), Type.Null()], {
    description: 'Value of `after` for the next page; null for an empty page.',
  }),
  stats: Type.Object({
    prefill_count: Type.Integer(),
    decode_count: Type.Integer(),
    regular_count: Type.Integer(),
    by_status: ByStatus,
    models: Type.Array(
      Type.Object({
        model: Type.Union([Type.String(), Type.Null()], { description: 'Null for wildcard workers.' }),
        by_status: ByStatus,
      }),
      { description: 'By the first model of each worker, in order of their names.' },
    ),
  }),
})
/** Most workers of one page. */
export const MAX_PAGE = 1_000
/** Filters and page of GET /workers. */
export const WorkerQuerySchema = Type.Object({
  model: nullable(Type.String(), 'Only workers that serve this model.'),
  q: nullable(Type.String(), 'Only workers with this text in their URL, id or first model; case is ignored.'),
  state: nullable(WorkerStatus, 'Only workers of this status.'),
  limit: nullable(Type.Integer({ minimum: 0, maximum: MAX_PAGE }), 'Page size. Default: all workers.'),
  after: nullable(Type.String(), 'Id after which the page begins.'),
})
export type WorkerQuery = Static<typeof WorkerQuerySchema>

/** What a registration of a worker would find. */
export const DiscoverySchema = Type.Object({
  runtime_type: PluginName,
  connection_mode: PluginName,
  models: Type.Array(ModelCardSchema, { description: 'Empty for a wildcard worker.' }),
  apis: Type.Array(Type.String(), { description: 'Formats that the worker accepts unchanged.' }),
  labels: Labels,
})
export type Discovery = Omit<Static<typeof DiscoverySchema>, 'models'> & {
  readonly models: readonly ModelCard[]
}
export type WorkerList = Omit<Static<typeof WorkerListSchema>, 'workers'> & {
  readonly workers: readonly WorkerRecord[]
}

/** Response of POST. */
export const WorkerAcceptedSchema = Type.Object({
  status: Type.Literal('accepted'),
  worker_id: Type.String(),
  url: Type.String(),
  location: Type.String(),
  message: Type.String(),
})
export type WorkerAccepted = Static<typeof WorkerAcceptedSchema>

/** Response of PUT, PATCH and DELETE. */
export const ChangeAcceptedSchema = Type.Object({
  status: Type.Literal('accepted'),
  worker_id: Type.String(),
  message: Type.String(),
})
