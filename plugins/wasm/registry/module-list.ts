/** The registered modules as GET /wasm shows them. */

import { type ModuleStats, toNanosecondTime } from '../statistics/module-stats.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import type { ModuleDescriptor, ModuleList, ModuleRecord, ModuleVersion, Trial } from '../wire.ts'
import type { SavedLine } from './saved-modules.ts'

/** Identifies the versions of one module by object identity; several modules may have the same name. */
export interface ModuleLine {
  /** UUID of the first version. Stored with later versions, it keeps their place in the order of registration over restarts. */
  readonly firstUuid: string
  /** Ascending in the order of registration. */
  place: number
}

/** A registered module on control. */
export interface Registered {
  readonly line: ModuleLine
  readonly loaded: LoadedModule
  readonly descriptor: ModuleDescriptor
  /** The configuration file names the path. */
  readonly isConfigured: boolean
  readonly hash: string
  readonly sizeBytes: number
  readonly createdAtNs: bigint
  /** How it is on trial beside the current version of its line; null for that version and earlier ones. */
  readonly trial: Trial | null
}

/** The current version of the module that a version belongs to. */
export function currentOf(modules: readonly Registered[], { line }: Registered): Registered | undefined {
  return modules.find((module) => module.line === line && module.trial === null)
}

/** A saved module that this gateway could not load, or not in its newest version. */
export interface NotLoaded {
  /** UUID of the current version, as far as it is known. */
  readonly uuid: string
  /** Null if it is not known. */
  readonly name: string | null
  readonly reason: string
  /** The saved version; undefined if its record cannot be read. */
  readonly line: SavedLine | undefined
}

/** @param earlier versions available for rollback, most recent first; null omits the members of detail=full */
export function toModuleList(
  modules: readonly Registered[],
  stats: ModuleStats,
  earlier: ((line: ModuleLine) => readonly Registered[]) | null,
): ModuleList {
  const { total, successful, failed, timeUs, maxTimeUs } = stats.totals()
  const totalMs = Math.floor(timeUs / 1_000)
  return {
    modules: modules.map((module) => ({
      ...toRecord(module, stats),
      ...(earlier === null ? {} : { module_state: toState(module, stats, earlier(module.line), modules) }),
    })),
    metrics: {
      total_executions: total,
      successful_executions: successful,
      failed_executions: failed,
      total_execution_time_ms: totalMs,
      // Rounded up, as the sum is rounded down: the longest is never below the average.
      max_execution_time_ms: Math.ceil(maxTimeUs / 1_000),
      average_execution_time_ms: total === 0 ? 0 : totalMs / total,
    },
  }
}

function toState(
  module: Registered,
  stats: ModuleStats,
  earlier: readonly Registered[],
  modules: readonly Registered[],
): NonNullable<ModuleRecord['module_state']> {
  const { loaded, trial } = module
  const { failed, timeUs, fuel, maxFuel, suspendedUntilMs } = stats.ofModule(loaded.row)
  return {
    failed_executions: failed,
    suspended_until: suspendedUntilMs === null ? null : new Date(suspendedUntilMs).toISOString(),
    cpu_ms: timeUs / 1_000,
    fuel_total: fuel,
    fuel_max: maxFuel,
    placement: loaded.placement,
    instance: loaded.instance,
    on_failure: loaded.onFailure,
    trial: trial?.kind ?? null,
    trial_of: trial === null ? null : (currentOf(modules, module)?.loaded.uuid ?? null),
    settings: loaded.settings,
    earlier_versions: earlier.length,
    versions: earlier.map(toVersion),
  }
}

function toVersion({ loaded, descriptor, hash, sizeBytes, createdAtNs }: Registered): ModuleVersion {
  return {
    module_uuid: loaded.uuid,
    file_path: descriptor.file_path,
    sha256_hash: hash,
    size_bytes: sizeBytes,
    created_at: toNanosecondTime(createdAtNs),
  }
}

function toRecord(module: Registered, stats: ModuleStats): ModuleRecord {
  const { loaded, descriptor } = module
  const { module_uuid, ...version } = toVersion(module)
  return {
    module_uuid,
    module_meta: {
      name: descriptor.name,
      ...version,
      last_accessed_at: toNanosecondTime(stats.lastAccessedNs(loaded.row)),
      access_count: stats.accessCount(loaded.row),
      attach_points: descriptor.attach_points,
    },
  }
}
