/**
 * A worker as it was requested: the specification and patch of the API with every default filled in, and the health,
 * retry and connection settings of one worker.
 */
import type {
  ModelCard,
  RuntimeType,
  WorkerHttpPool,
  WorkerRegistration,
  WorkerResilience,
  WorkerType,
} from '#kernel'
import type { WorkersConfig } from './config.ts'
import { workerErrors } from './errors.ts'
import { normalizeCard } from './model-card.ts'
import type { HealthWire, HttpPoolWire, ResilienceWire, WorkerPatchWire, WorkerSpecWire } from './wire.ts'

/** Members that are stored and returned unchanged; `buildWorker` reads those that routing needs. */
const CARRIED_KEYS = [
  'apis',
  'provider',
  'bootstrap_port',
  'bootstrap_host',
  'http_pool',
  'resilience',
  'load_monitor_interval_secs',
] as const satisfies readonly (keyof WorkerSpecWire)[]

/** Validated, under their wire names. */
export type CarriedMembers = {
  readonly [Key in (typeof CARRIED_KEYS)[number]]?: NonNullable<WorkerSpecWire[Key]>
}

/** Can be cloned and serialized as JSON: it is sent between threads and stored. */
export interface WorkerSpec {
  readonly url: string
  readonly workerType: WorkerType
  /** `unspecified` requests detection. */
  readonly runtimeType: RuntimeType
  /** Null requests discovery; an empty list is a wildcard. */
  readonly models: readonly ModelCard[] | null
  readonly apiKey: string | null
  readonly priority: number
  readonly cost: number
  /** Gets no new requests. */
  readonly isDrained: boolean
  readonly labels: Readonly<Record<string, string>>
  /** Labels as the configuration file has them; a PATCH changes `labels` only. */
  readonly configuredLabels?: Readonly<Record<string, string>>
  readonly health: HealthOverrides
  readonly maxConnectionAttempts: number
  readonly carried: CarriedMembers
}

/** A worker that has an id but is not registered yet. */
export interface Reservation {
  readonly id: string
  readonly spec: WorkerSpec
  readonly origin: Origin
  /** `performance.now()`, milliseconds. */
  readonly reservedAtMs: number
}

/** Changes of a PATCH; absent members stay as they are. */
export type WorkerPatch = Partial<
  Pick<WorkerSpec, 'priority' | 'cost' | 'isDrained' | 'labels' | 'health'>
> & {
  readonly apiKey?: string
}

/**
 * @throws duplicate_field (400) if both names of the runtime are given, invalid_resilience (400)
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
    isDrained: wire.drained ?? false,
    labels: wire.labels ?? {},
    health: toHealthOverrides(wire.health),
    maxConnectionAttempts: wire.max_connection_attempts ?? 20,
    carried,
  }
}

/** Omits members that are absent or null. */
export function toWorkerPatch(wire: WorkerPatchWire): WorkerPatch {
  const patch = someOf<WorkerPatch>({
    priority: wire.priority,
    cost: wire.cost,
    isDrained: wire.drained,
    labels: wire.labels,
    apiKey: wire.api_key,
    health: wire.health && toHealthOverrides(wire.health),
  })
  return patch ?? {}
}

/** Applies a patch: labels and health are merged key by key, other members are replaced. */
export function patchSpec(spec: WorkerSpec, patch: WorkerPatch): WorkerSpec {
  return {
    ...spec,
    ...patch,
    labels: { ...spec.labels, ...patch.labels },
    health: { ...spec.health, ...patch.health },
  }
}

/** Zero intervals and timeouts stand for those of the gateway. */
function toHealthOverrides(wire: HealthWire | null | undefined): HealthOverrides {
  const overrides = someOf<HealthOverrides>({
    timeoutSecs: wire?.timeout_secs || null,
    intervalSecs: wire?.check_interval_secs || null,
    successThreshold: wire?.success_threshold,
    failureThreshold: wire?.failure_threshold,
    isDisabled: wire?.disable_health_check,
    drainSettleSecs: wire?.drain_settle_secs,
  })
  return overrides ?? {}
}

/** @returns null if nothing is set */
export function toResilience(wire: ResilienceWire | null | undefined): WorkerResilience | null {
  if (wire == null) return null
  return someOf<WorkerResilience>({
    maxAttempts: wire.max_retries,
    initialBackoffMs: wire.initial_backoff_ms,
    maxBackoffMs: wire.max_backoff_ms,
    maxWaitMs: wire.max_wait_ms,
    backoffMultiplier: wire.backoff_multiplier,
    jitterFactor: wire.jitter_factor,
    disableRetry: wire.disable_retry,
    failureThreshold: wire.cb_failure_threshold,
    successThreshold: wire.cb_success_threshold,
    openMs: toMs(wire.cb_timeout_secs),
    disableBreaker: wire.disable_circuit_breaker,
    retryableStatuses: wire.retryable_status_codes,
  })
}

/** @returns null if nothing is set */
export function toHttpPool(wire: HttpPoolWire | null | undefined): WorkerHttpPool | null {
  if (wire == null) return null
  return someOf<WorkerHttpPool>({
    maxIdle: wire.pool_max_idle_per_host,
    idleMs: toMs(wire.pool_idle_timeout_secs),
    requestMs: toMs(wire.timeout_secs),
    connectMs: toMs(wire.connect_timeout_secs),
    headMs: toMs(wire.head_timeout_secs),
    firstTokenMs: toMs(wire.first_token_timeout_secs),
  })
}

/** Checks what the schema cannot express. @throws invalid_resilience (400) */
function checkResilience(wire: ResilienceWire | null | undefined): void {
  const { initial_backoff_ms: initialMs, max_backoff_ms: maxMs } = wire ?? {}
  if (initialMs == null || maxMs == null || maxMs >= initialMs) return
  const field = 'resilience.max_backoff_ms'
  throw workerErrors.invalid_resilience.with(
    { param: field },
    field,
    'must not be less than initial_backoff_ms',
  )
}

function toMs(seconds: number | null | undefined): number | undefined {
  return seconds == null ? undefined : seconds * 1_000
}

type Nullable<T> = { readonly [Key in keyof T]: T[Key] | null | undefined }

/** Without the members that are not set; null when none is. */
function someOf<T extends object>(members: Nullable<T>): T | null {
  const set = Object.entries(members).filter(([, value]) => value !== null && value !== undefined)
  return set.length === 0 ? null : (Object.fromEntries(set) as T)
}

/** Health check settings that apply to one worker. */
export interface HealthSettings {
  /** Timeout of one probe, seconds. */
  readonly timeoutSecs: number
  /** Interval between probes, seconds. */
  readonly intervalSecs: number
  /** Consecutive successful probes to become ready. */
  readonly successThreshold: number
  /** Consecutive failed probes to become not_ready. */
  readonly failureThreshold: number
  /** Sends no probes; the worker counts as ready. */
  readonly isDisabled: boolean
  /** Longest time that a removed worker stays listed for its running requests, seconds. */
  readonly drainSettleSecs: number
}

/** Settings of one worker that override those of the gateway. */
export type HealthOverrides = Partial<HealthSettings>

/** @param isExternal cloud services have no health route, so they are probed only if the worker requests it */
export function effectiveHealth(
  overrides: HealthOverrides,
  config: WorkersConfig,
  isExternal: boolean,
): HealthSettings {
  const defaults = config.health
  return {
    timeoutSecs: overrides.timeoutSecs ?? defaults.timeout_secs,
    intervalSecs: overrides.intervalSecs ?? defaults.check_interval_secs,
    successThreshold: Math.max(1, overrides.successThreshold ?? defaults.success_threshold),
    failureThreshold: Math.max(1, overrides.failureThreshold ?? defaults.failure_threshold),
    isDisabled: overrides.isDisabled ?? (isExternal || defaults.disable_health_check),
    drainSettleSecs: overrides.drainSettleSecs ?? defaults.drain_settle_secs,
  }
}

/** Where a worker comes from. Workers of the configuration are registered again at the next start. */
export type Origin = 'api' | 'config' | 'mesh'

/** The part of a specification that a connection mode needs to describe the worker. */
export function toDescribeTarget(spec: WorkerSpec, origin: Origin): WorkerRegistration {
  const { url, apiKey, runtimeType, models, labels, configuredLabels, carried } = spec
  const provider = carried.provider ?? null
  const isConfigured = origin === 'config'
  return { url, apiKey, runtimeType, models, labels, configuredLabels, provider, isConfigured }
}
