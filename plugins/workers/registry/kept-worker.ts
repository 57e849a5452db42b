/**
 * Checks the records of workers that the store and the mesh keep: what another program has written there must not reach the
 * worker table, which every thread reads. Members that newer releases add are allowed.
 */
import { defineValidator, type Static, Type } from '#kernel'
import { nullable } from '#shared'
import {
  ApiKey,
  Cost,
  HttpPoolSchema,
  Labels,
  ModelCardSchema,
  PluginName,
  ResilienceSchema,
  u32,
  WorkerSpecSchema,
  WorkerType,
  wholeSeconds,
} from './wire.ts'
import { workerKey } from './worker-url.ts'

const Count = u32()
const Seconds = wholeSeconds()
const Texts = Type.Array(Type.String())
const { provider, apis, bootstrap_port, bootstrap_host, load_monitor_interval_secs } =
  WorkerSpecSchema.properties

/** A `WorkerSpec`. */
const Spec = Type.Object({
  url: Type.String(),
  workerType: WorkerType,
  runtimeType: PluginName,
  models: Type.Union([Type.Array(ModelCardSchema), Type.Null()]),
  apiKey: Type.Union([ApiKey, Type.Null()]),
  priority: Count,
  cost: Cost,
  isDrained: Type.Boolean(),
  labels: Labels,
  configuredLabels: Type.Optional(Labels),
  health: Type.Partial(
    Type.Object({
      timeoutSecs: Seconds,
      intervalSecs: Seconds,
      successThreshold: Count,
      failureThreshold: Count,
      isDisabled: Type.Boolean(),
      drainSettleSecs: Seconds,
    }),
  ),
  maxConnectionAttempts: Count,
  carried: Type.Object({
    provider,
    apis,
    bootstrap_port,
    bootstrap_host,
    load_monitor_interval_secs,
    http_pool: nullable(Type.Object(HttpPoolSchema.properties)),
    resilience: nullable(Type.Object(ResilienceSchema.properties)),
  }),
})

const saved = defineValidator(
  Type.Object({
    id: Type.String(),
    spec: Spec,
    // What engines report is kept as it came: only what the gateway relies on is checked.
    findings: Type.Object({
      connectionMode: Type.String(),
      runtimeType: Type.String(),
      apis: Type.Optional(Texts),
      isExternal: Type.Optional(Type.Boolean()),
      provider: Type.Optional(Type.String()),
      models: Type.Array(Type.Object({ id: Type.String(), aliases: Type.Optional(Texts) })),
      labels: Labels,
      rankCount: Type.Optional(Count),
      warnings: Type.Optional(Texts),
    }),
    rank: Type.Optional(Count),
  }),
)

const Shared = Type.Object({
  spec: Spec,
  apiKey: Type.Union([Type.String(), Type.Null()]),
  replacements: Type.Integer(),
  isConfirmed: Type.Boolean(),
})
const shared = defineValidator(Shared)

/** Whether a value has the form of a `SavedWorker`. */
export function isSavedWorker(value: unknown): boolean {
  return saved.problem(value) === null
}

/** Whether a value has the form of a `SharedWorker`. @param key normal form of the URL, under which the record is kept */
export function isSharedWorker(value: unknown, key: string): boolean {
  return shared.problem(value) === null && workerKey((value as Static<typeof Shared>).spec.url) === key
}
