/** Payloads of the /wasm routes. */
import { type Static, Type } from '#kernel'
import { ATTACH_POINTS } from '../../wasm-sdk/abi.ts'

const AttachPointSchema = Type.Object(
  {
    Middleware: Type.Enum([...ATTACH_POINTS], {
      description:
        'Extensions: OnStreamEvent, each event of a streamed response; OnText, each piece of the text of an answer; OnPromptText, the texts of each request to a model; OnToolCall, each tool call that the gateway runs; OnPick, each pick of a worker if the policy is wasm.',
    }),
  },
  { additionalProperties: false },
)

const HeaderNeeds = (what: string) =>
  Type.Optional(
    Type.Union([Type.Boolean(), Type.Array(Type.String(), { maxItems: 64 })], {
      description: `${what}: true for all, false for none, or a list of names. Default true.`,
    }),
  )

export const ModuleNeedsSchema = Type.Object(
  {
    headers: HeaderNeeds('Request headers'),
    credentials: Type.Optional(
      Type.Boolean({
        description:
          'Includes authorization, cookie and other credentials in all request headers. Otherwise they are passed only if listed in headers. Default false.',
      }),
    ),
    client_ip: Type.Optional(
      Type.Boolean({
        description:
          'False if the module does not use the client address, which may then be empty. Default true.',
      }),
    ),
    request_body: Type.Optional(Type.Boolean({ description: 'Default false.' })),
    response_headers: HeaderNeeds('Response headers'),
    response_body: Type.Optional(Type.Boolean({ description: 'Default false.' })),
  },
  { additionalProperties: false, description: 'What the module receives.' },
)

const text = (description: string) => Type.Optional(Type.String({ maxLength: 1_024, description }))
export const ModuleSettingsSchema = Type.Record(
  Type.String({ minLength: 1, maxLength: 128 }),
  Type.Object(
    {
      type: Type.Optional(
        Type.Enum(['text', 'integer', 'number', 'boolean', 'list'], {
          description: 'list: comma-separated parts. Default text.',
        }),
      ),
      required: Type.Optional(Type.Boolean({ description: 'Default false.' })),
      values: Type.Optional(
        Type.Array(Type.String(), { maxItems: 256, description: 'Allowed values, or parts of a list.' }),
      ),
      minimum: Type.Optional(Type.Number()),
      maximum: Type.Optional(Type.Number()),
      default: text('Value used if the setting is absent.'),
      description: text('Description for operators.'),
    },
    { additionalProperties: false },
  ),
  {
    maxProperties: 256,
    description: 'Settings of the module; unknown settings and invalid values are rejected at registration.',
  },
)

export type ModuleSettings = Static<typeof ModuleSettingsSchema>

const patterns = (what: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: 64,
      description: `${what}; a trailing * matches any suffix.`,
    }),
  )

const MatcherSchema = Type.Object(
  {
    routes: patterns('Route paths as declared'),
    models: patterns('Model names in requests'),
    tenants: patterns('Tenants such as auth:team-a'),
    headers: Type.Optional(
      Type.Record(Type.String({ pattern: '^[!-9;-~]+$' }), Type.String(), {
        description: 'Request headers and their values; a trailing * of a value matches any suffix.',
      }),
    ),
    share: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'Share of the requests, selected by request id.' }),
    ),
  },
  { additionalProperties: false, description: 'Requests that the module is called for. Default: all.' },
)

/** One module in POST /wasm and in the configuration. Members after attach_points are extensions. */
const descriptorMembers = {
  name: Type.String(),
  file_path: Type.String({
    description:
      'Absolute path of a core module on the machine of the gateway, https URL, reference in an OCI registry such as oci://ghcr.io/team/module:1.0 or …/module@sha256:…, or upload://NAME for a file sent to POST /wasm/files. All but a path require sha256, and plugins.wasm.sources.origins must list the origin of a URL.',
  }),
  sha256: Type.Optional(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'SHA-256 of the module, hexadecimal. Other bytes are rejected before they are read.',
    }),
  ),
  module_type: Type.Literal('Middleware'),
  attach_points: Type.Array(AttachPointSchema, { maxItems: 16 }),
  config: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      secret: true,
      description: 'Settings of the module. Never returned by the API.',
    }),
  ),
  needs: Type.Optional(ModuleNeedsSchema),
  settings: Type.Optional(ModuleSettingsSchema),
  instance: Type.Optional(
    Type.Enum(['fresh', 'reuse', 'shared'], {
      description:
        'fresh: every call starts from the initial state. reuse: warm instances, one per tenant and thread. shared: one warm instance for all tenants.',
    }),
  ),
  kv: Type.Optional(
    Type.Enum(['memory', 'store', 'mesh'], {
      description:
        'Where its values and counters are kept. memory: until the gateway stops. store: in the store of the gateway, which requires the plugin storage. mesh: in a mesh that shares wasm, for the module of this name on all of its gateways. Default memory.',
    }),
  ),
  on_failure: Type.Optional(
    Type.Enum(['open', 'closed'], {
      description: 'Effect of a failed call: open continues without the module, closed responds with 500.',
    }),
  ),
  placement: Type.Optional(
    Type.Enum(['pool', 'inline', 'auto'], {
      description: 'Where it runs: on a pool thread, on the data thread, or chosen by its fuel use.',
    }),
  ),
  match: Type.Optional(MatcherSchema),
  priority: Type.Optional(
    Type.Integer({
      minimum: -1_000,
      maximum: 1_000,
      description:
        'Modules with a higher priority run first; equal ones in order of registration. Default 0.',
    }),
  ),
  on: Type.Optional(
    Type.Literal('refused', {
      description: 'Calls OnError and OnResponse also for requests rejected by the access check.',
    }),
  ),
  timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 300_000 })),
  fuel: Type.Optional(
    Type.Integer({
      minimum: 1_000,
      maximum: 1_000_000_000_000,
      description: "Fuel of one call, instead of the gateway's default.",
    }),
  ),
  allowed_hosts: Type.Optional(
    Type.Array(Type.String({ maxLength: 512 }), {
      maxItems: 64,
      description:
        'Origins that the module may fetch from, such as https://api.example.com; they must be covered by plugins.wasm.fetch.origins. Default none.',
    }),
  ),
  wasi: Type.Optional(Type.Boolean({ description: 'The module imports WASI preview 1. Default false.' })),
}

/** In a request: unknown members are echoed, and named in `x-weir-warning`. */
export const ModuleDescriptorSchema = Type.Object(descriptorMembers)
/** In the configuration: unknown members are rejected. */
export const ConfiguredModuleSchema = Type.Object(
  { ...descriptorMembers, file_path: Type.String({ ...descriptorMembers.file_path, reads: 'start' }) },
  { additionalProperties: false },
)

export type ModuleDescriptor = Static<typeof ModuleDescriptorSchema>

const { name: _name, module_type: _type, ...changeable } = descriptorMembers

export const TrialSchema = Type.Object(
  {
    kind: Type.Literal('canary'),
    percent: Type.Number({
      minimum: 0,
      maximum: 100,
      description: 'Percentage of the requests, selected by request id.',
    }),
  },
  {
    description:
      'Starts a trial instead of replacing the module: the new version gets a share of the requests.',
  },
)
export type Trial = Static<typeof TrialSchema>

/** Body of PUT /wasm/{module_uuid}: absent members keep their value. */
export const ModuleChangeSchema = Type.Partial(
  Type.Object({
    ...changeable,
    trial: TrialSchema,
  }),
  { additionalProperties: false },
)
export type ModuleChange = Static<typeof ModuleChangeSchema>

export const ModuleChangeResponseSchema = Type.Object({
  module_uuid: Type.String({
    format: 'uuid',
    description: 'The version that is current or on trial after the change.',
  }),
  message: Type.String(),
})

export const RegistrationSchema = Type.Object({
  modules: Type.Array(ModuleDescriptorSchema, { maxItems: 256 }),
})

const AddResultSchema = Type.Union([
  Type.Object({ Success: Type.String({ format: 'uuid' }) }),
  Type.Object({ Error: Type.String() }),
])

export const RegistrationResponseSchema = Type.Object({
  modules: Type.Array(Type.Intersect([ModuleDescriptorSchema, Type.Object({ add_result: AddResultSchema })])),
})

const ModuleVersionSchema = Type.Object({
  module_uuid: Type.String({ format: 'uuid' }),
  file_path: Type.String(),
  sha256_hash: Type.String(),
  size_bytes: Type.Integer(),
  created_at: Type.String({ description: 'Time of registration: ISO 8601, nanoseconds.' }),
})
export type ModuleVersion = Static<typeof ModuleVersionSchema>

const ModuleStateSchema = Type.Object(
  {
    failed_executions: Type.Integer(),
    suspended_until: Type.Union([Type.String(), Type.Null()]),
    cpu_ms: Type.Number({ description: 'Time in the module, milliseconds.' }),
    fuel_total: Type.Number({ description: 'Fuel used by all calls.' }),
    fuel_max: Type.Number({ description: 'Largest fuel used by one call.' }),
    placement: Type.String(),
    instance: Type.String(),
    on_failure: Type.String(),
    trial: Type.Union([Type.Literal('canary'), Type.Null()]),
    trial_of: Type.Union([Type.String(), Type.Null()]),
    settings: Type.Union([ModuleSettingsSchema, Type.Null()], {
      description: 'Settings declared by the module or its registration; null if none are declared.',
    }),
    earlier_versions: Type.Integer({ description: 'Number of versions available for rollback.' }),
    versions: Type.Array(ModuleVersionSchema, { description: 'Earlier versions, most recent first.' }),
  },
  { description: 'Only with detail=full.' },
)

const ModuleRecordSchema = Type.Object({
  module_uuid: Type.String({ format: 'uuid' }),
  module_meta: Type.Object({
    name: Type.String(),
    file_path: Type.String(),
    sha256_hash: Type.String(),
    size_bytes: Type.Integer(),
    created_at: Type.String({ description: 'ISO 8601, nanoseconds.' }),
    last_accessed_at: Type.String({ description: 'ISO 8601, nanoseconds.' }),
    access_count: Type.Integer(),
    attach_points: Type.Array(AttachPointSchema),
  }),
  module_state: Type.Optional(ModuleStateSchema),
})

const ExecutionMetricsSchema = Type.Object({
  total_executions: Type.Integer(),
  successful_executions: Type.Integer(),
  failed_executions: Type.Integer(),
  total_execution_time_ms: Type.Integer(),
  max_execution_time_ms: Type.Integer(),
  average_execution_time_ms: Type.Number({
    description: 'Total time divided by total executions; 0 before the first.',
  }),
})

export const ModuleListSchema = Type.Object({
  modules: Type.Array(ModuleRecordSchema),
  metrics: ExecutionMetricsSchema,
  not_loaded: Type.Optional(
    Type.Array(
      Type.Object({
        module_uuid: Type.String({ format: 'uuid', description: 'Of the current version.' }),
        name: Type.Union([Type.String(), Type.Null()], { description: 'Null if it is not known.' }),
        reason: Type.String(),
      }),
      {
        description:
          'Saved modules that this gateway could not load, or not in their newest version. Only with detail=full.',
      },
    ),
  ),
})

export type AddResult = Static<typeof AddResultSchema>
export type ModuleRecord = Static<typeof ModuleRecordSchema>
export type ModuleList = Static<typeof ModuleListSchema>
