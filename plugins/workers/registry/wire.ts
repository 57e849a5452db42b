/** The payloads of the worker routes, as schemas; their types, validation and documentation are made of nothing else. */
import { type ModelCard, type Static, type TSchema, Type } from '#kernel'

const U32_MAX = 4_294_967_295

const u32 = (options: { description?: string } = {}) =>
  Type.Integer({ minimum: 0, maximum: U32_MAX, ...options })
const wholeSeconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })
/** Null equals absent. */
export const optional = <S extends TSchema>(schema: S, options: { description?: string } = {}) =>
  Type.Optional(Type.Union([schema, Type.Null()], options))

const WorkerType = Type.Enum(['regular', 'prefill', 'decode'])
/** Whether a mode is registered is checked where the plugins are known. */
const WantedMode = Type.String({ maxLength: 64 })
const MODE_IS_CHECKED =
  'One that an enabled plugin has registered, such as http. Checked, then ignored: the URL decides.'
/** Names that transports give themselves and their engines. */
const ConnectionMode = Type.String({ pattern: '^[a-z][a-z0-9_-]{0,63}$' })
const RuntimeType = Type.String({ pattern: '^[a-z][a-z0-9_-]{0,63}$' })
const WorkerStatus = Type.Enum(['pending', 'ready', 'not_ready', 'failed', 'draining'])
/** JSON can write a number that is not finite, such as 1e999. */
const Cost = Type.Number({ minimum: 0, maximum: Number.MAX_VALUE })
const Labels = Type.Record(Type.String(), Type.String())
const ApiKey = Type.String({
  minLength: 1,
  pattern: '^[\\x21-\\x7e]+$',
  secret: true,
  description: 'Sent to the worker as a bearer token in place of the client’s. Never returned.',
})

export const HealthSchema = Type.Object({
  timeout_secs: optional(wholeSeconds('Per probe. 0: the gateway’s own.')),
  check_interval_secs: optional(wholeSeconds('Between probes. 0: the gateway’s own.')),
  success_threshold: optional(u32({ description: 'Consecutive good probes to become ready.' })),
  failure_threshold: optional(u32({ description: 'Consecutive bad probes to become not_ready.' })),
  disable_health_check: optional(Type.Boolean({ description: 'No probing; the worker counts as ready.' })),
  drain_settle_secs: optional(wholeSeconds('Longest time in state draining. 0 removes at once.')),
})
export type HealthWire = Static<typeof HealthSchema>

/** Members beyond these are carried as they came. */
export const ModelCardSchema = Type.Object(
  {
    id: Type.String({ minLength: 1 }),
    display_name: optional(Type.String()),
    aliases: optional(Type.Array(Type.String())),
    model_type: optional(Type.Union([Type.Array(Type.String()), u32()]), {
      description: 'What the model can do: words, or their bits as one number.',
    }),
    context_length: optional(u32({ description: 'Tokens.' })),
    tokenizer_path: optional(Type.String()),
    chat_template: optional(Type.String()),
    reasoning_parser: optional(Type.String()),
    tool_parser: optional(Type.String()),
  },
  { additionalProperties: true },
)
/** A card as somebody wrote it. */
export interface ModelCardWire {
  readonly id: string
  readonly model_type?: readonly string[] | number | null
  readonly [key: string]: unknown
}

/** Longest delay that timers take, in whole seconds. */
const TIMER_SECS_MAX = 2_147_483
const TIMER_MS_MAX = TIMER_SECS_MAX * 1_000

const timerSecs = (description: string, minimum = 0) =>
  optional(Type.Integer({ minimum, maximum: TIMER_SECS_MAX }), { description })
const timerMs = (description: string) =>
  optional(Type.Integer({ minimum: 0, maximum: TIMER_MS_MAX }), { description })
const threshold = (description: string) =>
  optional(Type.Integer({ minimum: 1, maximum: U32_MAX }), { description })

export const HttpPoolSchema = Type.Object({
  pool_max_idle_per_host: optional(u32(), { description: 'Idle connections kept per thread.' }),
  pool_idle_timeout_secs: timerSecs('Idle connections are closed after this.'),
  timeout_secs: timerSecs('The whole exchange, streamed body included. 0: no limit.'),
  connect_timeout_secs: timerSecs('To connect. 0: no limit.'),
})
export type HttpPoolWire = Static<typeof HttpPoolSchema>

export const ResilienceSchema = Type.Object({
  max_retries: threshold('Attempts in all, the first included.'),
  initial_backoff_ms: timerMs('Wait before the second attempt.'),
  max_backoff_ms: timerMs('Longest wait between attempts; at least initial_backoff_ms.'),
  max_wait_ms: timerMs('Longest Retry-After of this worker that is waited for.'),
  backoff_multiplier: optional(Type.Number({ minimum: 1, maximum: 1_000 }), {
    description: 'Each wait is this much longer than the one before.',
  }),
  jitter_factor: optional(Type.Number({ minimum: 0, maximum: 1 }), {
    description: 'A wait varies by up to this share of it.',
  }),
  disable_retry: optional(Type.Boolean(), { description: 'One attempt only.' }),
  cb_failure_threshold: threshold('Failures in a row that open the breaker.'),
  cb_success_threshold: threshold('Successes in a row that close it.'),
  cb_timeout_secs: timerSecs('How long it stays open before a request tries the worker.'),
  cb_window_secs: optional(u32(), {
    description: 'Kept and shown; failures count in a row, without a window.',
  }),
  disable_circuit_breaker: optional(Type.Boolean(), { description: 'The breaker never opens.' }),
  retryable_status_codes: optional(
    Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), { maxItems: 200 }),
    {
      description: 'Statuses of this worker that count as failures and may be tried again.',
    },
  ),
})
export type ResilienceWire = Static<typeof ResilienceSchema>

/** Body of POST and PUT, and an entry of `plugins.workers.workers`. */
export const WorkerSpecSchema = Type.Object({
  url: Type.String({
    description: 'Base URL: http, https, grpc or grpcs. Its scheme decides the connection.',
  }),
  worker_type: optional(WorkerType, { description: 'Default regular.' }),
  connection_mode: optional(WantedMode, { description: MODE_IS_CHECKED }),
  runtime_type: optional(RuntimeType, { description: 'Default unspecified, which asks for detection.' }),
  runtime: optional(RuntimeType, { description: 'Another name of runtime_type; never both.' }),
  models: optional(Type.Array(ModelCardSchema), {
    description: 'Absent: discovered. An empty list is a wildcard: the worker serves any model.',
  }),
  api_key: optional(ApiKey),
  priority: optional(u32({ description: 'Higher is preferred. Default 50.' })),
  cost: optional(Cost, { description: 'Lower wins between equals. Default 1.' }),
  labels: optional(Labels),
  health: optional(HealthSchema),
  provider: optional(Type.String(), {
    description:
      'Cloud service behind the worker: openai, anthropic, gemini, xai or another name. Decides parameters and credentials, and without runtime_type makes the worker external. Default: by the host of an external worker.',
  }),
  apis: optional(Type.Array(Type.String({ pattern: '^[a-z][a-z0-9_-]{0,63}$' }), { maxItems: 32 }), {
    description:
      'Formats that the worker takes as clients send them: chat, completions, messages, responses and others. Default: what it tells of itself.',
  }),
  bootstrap_port: optional(Type.Integer({ minimum: 0, maximum: 65_535 }), {
    description: 'Of a prefill worker: port where decode workers fetch KV blocks. 0: none.',
  }),
  bootstrap_host: optional(Type.String({ minLength: 1 }), {
    description: 'Host for the same. Default: the host of the URL.',
  }),
  http_pool: optional(HttpPoolSchema, {
    description: 'Connections to this worker; the rest is the gateway’s own.',
  }),
  resilience: optional(ResilienceSchema, {
    description: 'Retries and breaker of this worker; the rest is the gateway’s own.',
  }),
  max_connection_attempts: optional(u32({ description: 'Kept and shown. Default 20.' })),
  load_monitor_interval_secs: optional(Type.Integer({ minimum: 0, maximum: TIMER_SECS_MAX }), {
    description:
      'How often the engine is asked for its load; the smallest of the workers of one model counts. 0: the gateway’s own.',
  }),
})
export type WorkerSpecWire = Omit<Static<typeof WorkerSpecSchema>, 'models'> & {
  readonly models?: readonly ModelCardWire[] | null
}

/** Body of PATCH: only what is there changes. */
export const WorkerPatchSchema = Type.Object({
  connection_mode: optional(WantedMode, { description: MODE_IS_CHECKED }),
  priority: optional(u32()),
  cost: optional(Cost),
  labels: optional(Labels, { description: 'Merged key by key; a key cannot be removed.' }),
  api_key: optional(ApiKey, { description: 'Replaces the key; it cannot be cleared.' }),
  health: optional(HealthSchema, { description: 'Merged field by field.' }),
})
export type WorkerPatchWire = Static<typeof WorkerPatchSchema>

/** How the newest change of a worker fares. */
export const JobStatusSchema = Type.Object({
  job_type: Type.Enum(['AddWorker', 'UpdateWorker', 'RemoveWorker']),
  worker_url: Type.String(),
  status: Type.Enum(['pending', 'processing', 'failed']),
  message: Type.Union([Type.String(), Type.Null()], { description: 'Why it failed.' }),
  timestamp: Type.Integer({ description: 'Unix seconds of the last change of status.' }),
})

export const WorkerRecordSchema = Type.Object(
  {
    id: Type.String({ description: 'UUID.' }),
    model_id: Type.Optional(Type.String({ description: 'First model; absent for a wildcard worker.' })),
    url: Type.String(),
    models: Type.Optional(Type.Array(ModelCardSchema, { description: 'Absent for a wildcard worker.' })),
    worker_type: WorkerType,
    connection_mode: ConnectionMode,
    runtime_type: RuntimeType,
    labels: Type.Optional(Labels),
    priority: u32(),
    cost: Type.Number(),
    max_connection_attempts: u32(),
    health: Type.Object({
      timeout_secs: Type.Number(),
      check_interval_secs: Type.Number(),
      success_threshold: Type.Integer(),
      failure_threshold: Type.Integer(),
      disable_health_check: Type.Boolean(),
      drain_settle_secs: Type.Number(),
    }),
    provider: Type.Optional(Type.String({ description: 'Cloud service behind an external worker.' })),
    apis: Type.Optional(Type.Array(Type.String())),
    bootstrap_port: Type.Optional(Type.Integer()),
    bootstrap_host: Type.Optional(Type.String()),
    http_pool: Type.Optional(HttpPoolSchema),
    resilience: Type.Optional(ResilienceSchema),
    load_monitor_interval_secs: Type.Optional(Type.Integer()),
    dp_base_url: Type.Optional(
      Type.String({ description: 'URL of the engine of which this is one data-parallel rank.' }),
    ),
    dp_rank: Type.Optional(Type.Integer({ description: '0-based.' })),
    dp_size: Type.Optional(Type.Integer({ description: 'Ranks of that engine.' })),
    is_healthy: Type.Boolean({ description: 'True exactly when status is ready.' }),
    status: WorkerStatus,
    load: Type.Integer({ description: 'Requests of this gateway in flight.' }),
    breaker: Type.Optional(
      Type.Enum(['closed', 'open', 'half_open'], {
        description: 'Of the circuit breaker; absent while the registration is not finished.',
      }),
    ),
    job_status: Type.Optional(JobStatusSchema),
  },
  { additionalProperties: true },
)
/** Cards are shown as they are kept, and the rest of the specification as it came. */
export type WorkerRecord = Omit<Static<typeof WorkerRecordSchema>, 'models'> & {
  readonly models?: readonly ModelCard[]
}

/** Reply of GET /workers; the counts follow the filter. */
export const WorkerListSchema = Type.Object({
  workers: Type.Array(WorkerRecordSchema),
  total: Type.Integer(),
  stats: Type.Object({
    prefill_count: Type.Integer(),
    decode_count: Type.Integer(),
    regular_count: Type.Integer(),
  }),
})
export type WorkerList = Omit<Static<typeof WorkerListSchema>, 'workers'> & {
  readonly workers: readonly WorkerRecord[]
}

/** Reply of POST. */
export const WorkerAcceptedSchema = Type.Object({
  status: Type.Literal('accepted'),
  worker_id: Type.String(),
  url: Type.String(),
  location: Type.String(),
  message: Type.String(),
})

/** Reply of PUT, PATCH and DELETE. */
export const ChangeAcceptedSchema = Type.Object({
  status: Type.Literal('accepted'),
  worker_id: Type.String(),
  message: Type.String(),
})
