/** The payloads of the worker routes, as schemas; their types, validation and documentation are made of nothing else. */
import { type ModelCard, type Static, type TSchema, Type } from '#kernel'

const U32_MAX = 4_294_967_295

const u32 = (options: { description?: string } = {}) =>
  Type.Integer({ minimum: 0, maximum: U32_MAX, ...options })
const wholeSeconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })
/** Null equals absent. @source routes facts 4.5 */
const optional = <S extends TSchema>(schema: S, options: { description?: string } = {}) =>
  Type.Optional(Type.Union([schema, Type.Null()], options))

const WorkerType = Type.Enum(['regular', 'prefill', 'decode'])
const ConnectionMode = Type.Enum(['http', 'grpc'])
const RuntimeType = Type.Enum(['sglang', 'vllm', 'trtllm', 'mlx', 'external', 'unspecified'])
const WorkerStatus = Type.Enum(['pending', 'ready', 'not_ready', 'failed', 'draining'])
const Labels = Type.Record(Type.String(), Type.String())
const ApiKey = Type.String({
  minLength: 1,
  pattern: '^[\\x21-\\x7e]+$',
  secret: true,
  description: 'Sent to the worker as a bearer token in place of the client’s. Never returned.',
})

/** @source routes facts 16.2 */
export const HealthSchema = Type.Object({
  timeout_secs: optional(wholeSeconds('Per probe. 0: the gateway’s own.')),
  check_interval_secs: optional(wholeSeconds('Between probes. 0: the gateway’s own.')),
  success_threshold: optional(u32({ description: 'Consecutive good probes to become ready.' })),
  failure_threshold: optional(u32({ description: 'Consecutive bad probes to become not_ready.' })),
  disable_health_check: optional(Type.Boolean({ description: 'No probing; the worker counts as ready.' })),
  drain_settle_secs: optional(wholeSeconds('Longest time in state draining. 0 removes at once.')),
})
export type HealthWire = Static<typeof HealthSchema>

/** Members beyond these are carried as they came. @source routes facts 16.3 */
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

const HttpPool = Type.Object({
  pool_max_idle_per_host: optional(u32()),
  pool_idle_timeout_secs: optional(u32()),
  timeout_secs: optional(u32()),
  connect_timeout_secs: optional(u32()),
})

const Resilience = Type.Object({
  max_retries: optional(u32()),
  initial_backoff_ms: optional(u32()),
  max_backoff_ms: optional(u32()),
  backoff_multiplier: optional(Type.Number()),
  jitter_factor: optional(Type.Number()),
  disable_retry: optional(Type.Boolean()),
  cb_failure_threshold: optional(u32()),
  cb_success_threshold: optional(u32()),
  cb_timeout_secs: optional(u32()),
  cb_window_secs: optional(u32()),
  disable_circuit_breaker: optional(Type.Boolean()),
  retryable_status_codes: optional(Type.Array(Type.Integer())),
})

/** Body of POST and PUT, and an entry of `plugins.workers.workers`. @source API spec 2.11, routes facts 16.1 */
export const WorkerSpecSchema = Type.Object({
  url: Type.String({
    description: 'Base URL: http, https, grpc or grpcs. Its scheme decides the connection.',
  }),
  worker_type: optional(WorkerType, { description: 'Default regular.' }),
  connection_mode: optional(ConnectionMode, { description: 'Checked, then ignored: the URL decides.' }),
  runtime_type: optional(RuntimeType, { description: 'Default unspecified, which asks for detection.' }),
  runtime: optional(RuntimeType, { description: 'Another name of runtime_type; never both.' }),
  models: optional(Type.Array(ModelCardSchema), {
    description: 'Absent: discovered. An empty list is a wildcard: the worker serves any model.',
  }),
  api_key: optional(ApiKey),
  priority: optional(u32({ description: 'Higher is preferred. Default 50.' })),
  cost: optional(Type.Number({ description: 'Lower wins between equals. Default 1.' })),
  labels: optional(Labels),
  health: optional(HealthSchema),
  provider: optional(Type.String()),
  bootstrap_port: optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
  http_pool: optional(HttpPool, { description: 'Kept and shown; this build does not act on it.' }),
  resilience: optional(Resilience, { description: 'Kept and shown; this build does not act on it.' }),
  max_connection_attempts: optional(u32({ description: 'Kept and shown. Default 20.' })),
  load_monitor_interval_secs: optional(u32()),
})
export type WorkerSpecWire = Omit<Static<typeof WorkerSpecSchema>, 'models'> & {
  readonly models?: readonly ModelCardWire[] | null
}

/** Body of PATCH: only what is there changes. @source API spec 4.4, routes facts 16.8 */
export const WorkerPatchSchema = Type.Object({
  priority: optional(u32()),
  cost: optional(Type.Number()),
  labels: optional(Labels, { description: 'Merged key by key; a key cannot be removed.' }),
  api_key: optional(ApiKey, { description: 'Replaces the key; it cannot be cleared.' }),
  health: optional(HealthSchema, { description: 'Merged field by field.' }),
})
export type WorkerPatchWire = Static<typeof WorkerPatchSchema>

/** How the newest change of a worker fares. @source routes facts 16.5, 16.7 */
export const JobStatusSchema = Type.Object({
  job_type: Type.Enum(['AddWorker', 'UpdateWorker', 'RemoveWorker']),
  worker_url: Type.String(),
  status: Type.Enum(['pending', 'processing', 'failed']),
  message: Type.Union([Type.String(), Type.Null()], { description: 'Why it failed.' }),
  timestamp: Type.Integer({ description: 'Unix seconds of the last change of status.' }),
})

/** @source routes facts 16.5 */
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
    is_healthy: Type.Boolean({ description: 'True exactly when status is ready.' }),
    status: WorkerStatus,
    load: Type.Integer({ description: 'Requests of this gateway in flight.' }),
    job_status: Type.Optional(JobStatusSchema),
  },
  { additionalProperties: true },
)
/** Cards are shown as they are kept, and the rest of the specification as it came. */
export type WorkerRecord = Omit<Static<typeof WorkerRecordSchema>, 'models'> & {
  readonly models?: readonly ModelCard[]
}

/** Reply of GET /workers; the counts follow the filter. @source routes facts 16.5 */
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

/** Reply of POST. @source API spec 4.4 */
export const WorkerAcceptedSchema = Type.Object({
  status: Type.Literal('accepted'),
  worker_id: Type.String(),
  url: Type.String(),
  location: Type.String(),
  message: Type.String(),
})

/** Reply of PUT, PATCH and DELETE. @source API spec 4.4 */
export const ChangeAcceptedSchema = Type.Object({
  status: Type.Literal('accepted'),
  worker_id: Type.String(),
  message: Type.String(),
})
