/** Bodies of the /ha routes. */
import { type Static, Type } from '#kernel'

const integer = (description: string) => Type.Integer({ description })

export const StatusSchema = Type.Object({
  node_name: Type.String({ description: 'Name of this gateway.' }),
  node_count: integer('Listed gateways.'),
  nodes: Type.Array(
    Type.Object({
      name: Type.String(),
      address: Type.String(),
      status: Type.Enum(['Init', 'Alive', 'Suspected', 'Down', 'Leaving']),
      version: integer('Grows each time that a gateway of this name joins.'),
      incarnation: integer('As `version`.'),
      software: Type.String({ description: 'Version of the gateway.' }),
      in_flight: integer('Requests in flight to workers.'),
      config: Type.Record(Type.String(), Type.String(), {
        description: 'Short hash of each section of its configuration.',
      }),
    }),
    { description: 'By name.' },
  ),
  stores: Type.Object({
    membership_count: integer('As `node_count`.'),
    worker_count: integer('Registered workers.'),
    policy_count: integer('Models with workers.'),
    app_count: integer('Keys of `/ha/config`.'),
  }),
  engine: Type.Object({
    kind: Type.String(),
    state: Type.Enum(['connected', 'degraded', 'diverged']),
    revision: integer('Of the last change that this gateway has.'),
  }),
  config_differences: Type.Array(Type.String(), {
    description: 'Sections whose configuration is not the same on every living gateway.',
  }),
})
export type StatusWire = Static<typeof StatusSchema>

export const HealthSchema = Type.Object({
  status: Type.Enum(['healthy', 'degraded']),
  node_name: Type.String(),
  cluster_size: integer('Gateways that are not down.'),
  stores_healthy: Type.Boolean({ description: 'Whether the engine answers and has its data.' }),
  problem: Type.Union([Type.String(), Type.Null()]),
})

export const WorkerStateSchema = Type.Object({
  worker_id: Type.String(),
  model_id: Type.String({ description: 'Its first model; empty if it serves any.' }),
  url: Type.String(),
  health: Type.Boolean({ description: 'Ready on this gateway.' }),
  load: Type.Number({ description: 'Requests in flight, of all gateways.' }),
  version: integer('Grows with each change.'),
  spec: Type.Object({
    worker_type: Type.String(),
    connection_mode: Type.String(),
    runtime_type: Type.String(),
    models: Type.Array(Type.String()),
    priority: Type.Number(),
    cost: Type.Number(),
    labels: Type.Record(Type.String(), Type.String()),
  }),
})
export type WorkerStateWire = Static<typeof WorkerStateSchema>

export const PolicyStateSchema = Type.Object({
  model_id: Type.String(),
  policy_type: Type.String(),
  config: Type.Object({ workers: integer('Workers that serve the model.') }),
  version: integer('Always 1: a policy is a setting.'),
})
export type PolicyStateWire = Static<typeof PolicyStateSchema>

export type HealthWire = Static<typeof HealthSchema>

export const ConfigEntrySchema = Type.Object({
  key: Type.String({
    pattern: '^[A-Za-z0-9._:/-]{1,256}$',
    description: '1 to 256 letters, digits and `._-:/`. `global_rate_limit` is reserved.',
  }),
  value: Type.String({ description: 'Bytes in hexadecimal, at most 1 MiB.' }),
})
export const ConfigUpdatedSchema = Type.Object({ status: Type.Literal('updated'), key: Type.String() })
export const ConfigValueSchema = Type.Object({
  key: Type.String(),
  value: Type.String({ description: 'Bytes in lower-case hexadecimal.' }),
  format: Type.Literal('hex'),
})

export const RateLimitSchema = Type.Object({
  limit_per_second: Type.Integer({
    minimum: 0,
    maximum: 4_294_967_295,
    description: 'Requests per second over all gateways; 0 for no limit.',
  }),
})
export const RateLimitUpdatedSchema = Type.Object({
  status: Type.Literal('updated'),
  limit_per_second: integer('The new limit.'),
})
export const RateLimitStatsSchema = Type.Object({
  limit_per_second: integer('0 for no limit.'),
  current_count: integer('Requests of the current second, of all gateways.'),
  remaining: integer('-1 for no limit.'),
})
export const ShutdownSchema = Type.Object({ status: Type.Literal('shutdown initiated') })
export const AcceptedSchema = Type.Object({ status: Type.Literal('accepted') })
export const RestoredSchema = Type.Object({
  status: Type.Literal('restored'),
  records: integer('Records.'),
  modules: integer('Module files, of all versions that this gateway has loaded.'),
})
export type RestoredWire = Static<typeof RestoredSchema>
