/** Payloads of the /wasm routes. */
import { type Static, Type } from '#kernel'

const AttachPointSchema = Type.Object(
  {
    Middleware: Type.Union(
      [
        Type.Literal('OnRequest'),
        Type.Literal('OnResponse'),
        Type.Literal('OnError'),
        Type.Literal('OnStreamEvent'),
        Type.Literal('OnToolCall'),
        Type.Literal('OnPick'),
      ],
      {
        description:
          'Extensions: OnStreamEvent, each event of a streamed answer; OnToolCall, each call of a tool that the gateway runs; OnPick, each choice of a worker where the policy is wasm.',
      },
    ),
  },
  { additionalProperties: false },
)

const HeaderNeeds = (what: string) =>
  Type.Optional(
    Type.Union([Type.Boolean(), Type.Array(Type.String(), { maxItems: 64 })], {
      description: `${what}: all, none, or those named. Default true.`,
    }),
  )

export const ModuleNeedsSchema = Type.Object(
  {
    headers: HeaderNeeds('Request headers'),
    credentials: Type.Optional(
      Type.Boolean({
        description:
          'All request headers include authorization, cookie and the like. Without it only those that are named are shown. Default false.',
      }),
    ),
    client_ip: Type.Optional(
      Type.Boolean({
        description:
          'False for modules that do without the address of the caller, which may then be empty. Default true.',
      }),
    ),
    request_body: Type.Optional(Type.Boolean({ description: 'Default false.' })),
    response_headers: HeaderNeeds('Headers of the answer'),
    response_body: Type.Optional(Type.Boolean({ description: 'Default false.' })),
  },
  { additionalProperties: false, description: 'What the module is given; nothing else is copied for it.' },
)

const text = (description: string) => Type.Optional(Type.String({ maxLength: 1_024, description }))
export const ModuleSettingsSchema = Type.Record(
  Type.String({ minLength: 1, maxLength: 128 }),
  Type.Object(
    {
      type: Type.Optional(
        Type.Union(
          [
            Type.Literal('text'),
            Type.Literal('integer'),
            Type.Literal('number'),
            Type.Literal('boolean'),
            Type.Literal('list'),
          ],
          { description: 'list: parts between commas. Default text.' },
        ),
      ),
      required: Type.Optional(Type.Boolean({ description: 'Default false.' })),
      values: Type.Optional(
        Type.Array(Type.String(), { maxItems: 256, description: 'The only values, or parts, allowed.' }),
      ),
      minimum: Type.Optional(Type.Number()),
      maximum: Type.Optional(Type.Number()),
      default: text('What the module takes when it is not set.'),
      description: text('For people.'),
    },
    { additionalProperties: false },
  ),
  {
    maxProperties: 256,
    description: 'Settings of the module; others, and values that do not fit, are refused at registration.',
  },
)

export type ModuleSettings = Static<typeof ModuleSettingsSchema>

const patterns = (what: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: 64,
      description: `${what}; a star at the end stands for whatever follows.`,
    }),
  )

const MatcherSchema = Type.Object(
  {
    routes: patterns('Paths as the routes declare them'),
    models: patterns('Models as the requests name them'),
    tenants: patterns('Tenants such as auth:team-a, written out'),
    headers: Type.Optional(
      Type.Record(Type.String({ pattern: '^[!-9;-~]+$' }), Type.String(), {
        description:
          'Request headers and their values; a star at the end of a value stands for whatever follows.',
      }),
    ),
    share: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'Part of the requests, by their id.' }),
    ),
  },
  { additionalProperties: false, description: 'Which requests the module is for. Default: all.' },
)

/** What POST /wasm and the configuration say of one module. Members behind attach_points are extensions. */
const descriptorMembers = {
  name: Type.String(),
  file_path: Type.String({ description: 'Absolute path of a core module, as the gateway sees it.' }),
  module_type: Type.Literal('Middleware'),
  attach_points: Type.Array(AttachPointSchema, { maxItems: 16 }),
  config: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      secret: true,
      description: 'What the module reads as its configuration. Never shown again.',
    }),
  ),
  needs: Type.Optional(ModuleNeedsSchema),
  settings: Type.Optional(ModuleSettingsSchema),
  instance: Type.Optional(
    Type.Union([Type.Literal('fresh'), Type.Literal('reuse'), Type.Literal('shared')], {
      description:
        'fresh: every call finds the instance as it was made. reuse keeps warm instances, one for each tenant and thread; shared one for all tenants: for modules that keep what everybody may see.',
    }),
  ),
  on_failure: Type.Optional(
    Type.Union([Type.Literal('open'), Type.Literal('closed')], {
      description: 'What a failed call does: open goes on without the module, closed answers 500.',
    }),
  ),
  placement: Type.Optional(
    Type.Union([Type.Literal('pool'), Type.Literal('inline'), Type.Literal('auto')], {
      description:
        'Where it runs: on a thread of the pool, on the thread that serves the request, or where it fits.',
    }),
  ),
  match: Type.Optional(MatcherSchema),
  priority: Type.Optional(
    Type.Integer({
      minimum: -1_000,
      maximum: 1_000,
      description: 'Modules of a higher priority run first; within one, in order of registration. Default 0.',
    }),
  ),
  on: Type.Optional(
    Type.Literal('refused', {
      description: 'OnError and OnResponse also see requests that the access check refused.',
    }),
  ),
  timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 300_000 })),
  fuel: Type.Optional(
    Type.Integer({
      minimum: 1_000,
      maximum: 1_000_000_000_000,
      description: "Units that one call may burn, in place of the gateway's limit.",
    }),
  ),
  allowed_hosts: Type.Optional(
    Type.Array(Type.String({ maxLength: 512 }), {
      maxItems: 64,
      description:
        'Origins that the module may fetch from, such as https://api.example.com; plugins.wasm.fetch.origins has to cover them. Default none.',
    }),
  ),
  wasi: Type.Optional(Type.Boolean({ description: 'The module imports WASI preview 1. Default false.' })),
}

/** In a request: members that nobody knows are echoed and otherwise ignored. */
export const ModuleDescriptorSchema = Type.Object(descriptorMembers)
/** In the configuration: members that nobody knows are mistakes. */
export const ConfiguredModuleSchema = Type.Object(descriptorMembers, { additionalProperties: false })

export type ModuleDescriptor = Static<typeof ModuleDescriptorSchema>

const { name: _name, module_type: _type, ...changeable } = descriptorMembers

/** What PUT /wasm/{module_uuid} takes: members that are left out stay as they are. */
export const ModuleChangeSchema = Type.Partial(
  Type.Object({
    ...changeable,
    trial: Type.Union(
      [
        Type.Object({
          kind: Type.Literal('canary'),
          percent: Type.Number({ minimum: 0, maximum: 100, description: 'Of the requests, by their id.' }),
        }),
        Type.Object({ kind: Type.Literal('shadow') }),
      ],
      {
        description:
          'The new version does not take the place yet: a canary gets its part of the requests; a shadow sees all of them, and what it says is only compared.',
      },
    ),
  }),
  { additionalProperties: false },
)
export type ModuleChange = Static<typeof ModuleChangeSchema>

export const ModuleChangeReplySchema = Type.Object({
  module_uuid: Type.String({ format: 'uuid', description: 'Of the version that runs, or is on trial, now.' }),
  message: Type.String(),
})

export const RegistrationSchema = Type.Object({
  modules: Type.Array(ModuleDescriptorSchema, { maxItems: 256 }),
})

const AddResultSchema = Type.Union([
  Type.Object({ Success: Type.String({ format: 'uuid' }) }),
  Type.Object({ Error: Type.String() }),
])

export const RegistrationReplySchema = Type.Object({
  modules: Type.Array(Type.Intersect([ModuleDescriptorSchema, Type.Object({ add_result: AddResultSchema })])),
})

const ModuleVersionSchema = Type.Object({
  module_uuid: Type.String({ format: 'uuid' }),
  file_path: Type.String(),
  sha256_hash: Type.String(),
  size_bytes: Type.Integer(),
  created_at: Type.String({ description: 'When it was registered: ISO 8601, nanoseconds.' }),
})
export type ModuleVersion = Static<typeof ModuleVersionSchema>

const ModuleStateSchema = Type.Object(
  {
    failed_executions: Type.Integer(),
    suspended_until: Type.Union([Type.String(), Type.Null()]),
    cpu_ms: Type.Number({ description: 'Time in the guest, milliseconds.' }),
    fuel_total: Type.Number({ description: 'Units that all calls have burnt.' }),
    fuel_max: Type.Number({ description: 'Units of the dearest call.' }),
    placement: Type.String(),
    instance: Type.String(),
    on_failure: Type.String(),
    trial: Type.Union([Type.Literal('canary'), Type.Literal('shadow'), Type.Null()]),
    trial_of: Type.Union([Type.String(), Type.Null()]),
    settings: Type.Union([ModuleSettingsSchema, Type.Null()], {
      description: 'As the module or its registration declares them; null when nobody does.',
    }),
    earlier_versions: Type.Integer({ description: 'Versions that a rollback can go back to.' }),
    versions: Type.Array(ModuleVersionSchema, { description: 'Those versions, the last one first.' }),
  },
  { description: 'Only with detail=full.' },
)

export const ModuleRecordSchema = Type.Object({
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

export const ExecutionMetricsSchema = Type.Object({
  total_executions: Type.Integer(),
  successful_executions: Type.Integer(),
  failed_executions: Type.Integer(),
  total_execution_time_ms: Type.Integer(),
  max_execution_time_ms: Type.Integer(),
  average_execution_time_ms: Type.Number({
    description: 'Total time by total executions; 0 before the first.',
  }),
})

export const ModuleListSchema = Type.Object({
  modules: Type.Array(ModuleRecordSchema),
  metrics: ExecutionMetricsSchema,
})

export type AddResult = Static<typeof AddResultSchema>
export type ModuleRecord = Static<typeof ModuleRecordSchema>
export type ModuleList = Static<typeof ModuleListSchema>
