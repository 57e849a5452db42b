/** A worker as somebody asked for it: our own form of the wire's specification and patch, every default filled in. */
import type { ModelCard, RuntimeType, WorkerType } from '#kernel'
import { workerErrors } from './errors.ts'
import type { HealthOverrides } from './health-settings.ts'
import { normalizeCard } from './model-card.ts'
import { checkResilience } from './resilience.ts'
import type { HealthWire, WorkerPatchWire, WorkerSpecWire } from './wire.ts'

/** Members that are kept and shown as they came; `buildWorker` reads what routing needs of them. */
const CARRIED_KEYS = [
  'apis',
  'provider',
  'bootstrap_port',
  'bootstrap_host',
  'http_pool',
  'resilience',
  'load_monitor_interval_secs',
] as const satisfies readonly (keyof WorkerSpecWire)[]

/** Wire names and values, checked. */
export type CarriedMembers = {
  readonly [Key in (typeof CARRIED_KEYS)[number]]?: NonNullable<WorkerSpecWire[Key]>
}

/** Survives `structuredClone` and JSON: it crosses threads and is stored. */
export interface WorkerSpec {
  readonly url: string
  readonly workerType: WorkerType
  /** `unspecified` asks for detection. */
  readonly runtimeType: RuntimeType
  /** Null asks for discovery; an empty list is a wildcard on purpose. */
  readonly models: readonly ModelCard[] | null
  readonly apiKey: string | null
  readonly priority: number
  readonly cost: number
  readonly labels: Readonly<Record<string, string>>
  readonly health: HealthOverrides
  readonly maxConnectionAttempts: number
  readonly carried: CarriedMembers
}

/** What a PATCH changes; what is not there stays. */
export interface WorkerPatch {
  readonly priority?: number
  readonly cost?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly apiKey?: string
  readonly health?: HealthOverrides
}

/**
 * @throws duplicate_field (400) when both names of the runtime are given, invalid_resilience (400)
 */
export function toWorkerSpec(wire: WorkerSpecWire): WorkerSpec {
  if (wire.runtime != null && wire.runtime_type != null) {
    throw workerErrors.duplicate_field.with({ param: 'runtime' }, 'runtime_type', 'runtime')
  }
  checkResilience(wire.resilience)
  const carried = Object.fromEntries(
    CARRIED_KEYS.map((key) => [key, wire[key]]).filter(([, value]) => value != null),
  )
  return {
    url: wire.url,
    workerType: wire.worker_type ?? 'regular',
    runtimeType: wire.runtime_type ?? wire.runtime ?? 'unspecified',
    models: wire.models?.map(normalizeCard) ?? null,
    apiKey: wire.api_key ?? null,
    priority: wire.priority ?? 50,
    cost: wire.cost ?? 1,
    labels: wire.labels ?? {},
    health: toHealthOverrides(wire.health),
    maxConnectionAttempts: wire.max_connection_attempts ?? 20,
    carried,
  }
}

/** Members that are absent or null are left out. */
export function toWorkerPatch(wire: WorkerPatchWire): WorkerPatch {
  return {
    ...(wire.priority != null && { priority: wire.priority }),
    ...(wire.cost != null && { cost: wire.cost }),
    ...(wire.labels != null && { labels: wire.labels }),
    ...(wire.api_key != null && { apiKey: wire.api_key }),
    ...(wire.health != null && { health: toHealthOverrides(wire.health) }),
  }
}

/** A worker known by nothing but its URL, as flags give it. */
export function specOfUrl(url: string): WorkerSpec {
  return toWorkerSpec({ url })
}

/** The asked-for worker after a patch: labels and health merge key by key, the rest is replaced. */
export function patchSpec(spec: WorkerSpec, patch: WorkerPatch): WorkerSpec {
  return {
    ...spec,
    ...patch,
    labels: { ...spec.labels, ...patch.labels },
    health: { ...spec.health, ...patch.health },
  }
}

/** Zero intervals and time limits mean the gateway's own. */
function toHealthOverrides(wire: HealthWire | null | undefined): HealthOverrides {
  if (wire == null) return {}
  return {
    ...(wire.timeout_secs ? { timeoutSecs: wire.timeout_secs } : {}),
    ...(wire.check_interval_secs ? { intervalSecs: wire.check_interval_secs } : {}),
    ...(wire.success_threshold != null && { successThreshold: wire.success_threshold }),
    ...(wire.failure_threshold != null && { failureThreshold: wire.failure_threshold }),
    ...(wire.disable_health_check != null && { isDisabled: wire.disable_health_check }),
    ...(wire.drain_settle_secs != null && { drainSettleSecs: wire.drain_settle_secs }),
  }
}
