/** Creates the control side of the plugin: the worker manager, and the registry service for other plugins. */
import {
  EngineLoadsReplica,
  GatewayError,
  type Host,
  type KnownWorker,
  Mesh,
  PendingWorkersReplica,
  Store,
  type WorkerControls,
  type WorkerRegistryService,
  WorkerTableReplica,
  workerControls,
} from '#kernel'
import type { WorkersConfig } from './config.ts'
import { ConfiguredWorkers } from './configured-workers.ts'
import type { ControlParts } from './control-parts.ts'
import { EngineMetrics } from './engine-load.ts'
import { HealthChecks } from './health-checks.ts'
import { JobRunner } from './jobs.ts'
import { LoadMonitor } from './load-monitor.ts'
import { WorkerManager } from './manager.ts'
import { Registrations } from './registrations.ts'
import { Registry } from './registry.ts'
import { Removals } from './removals.ts'
import { SavedWorkers } from './saved-workers.ts'
import { SharedWorkers, sharedWorkerId } from './shared-workers.ts'
import type { WorkerRecord } from './wire.ts'
import { readSpec } from './worker-validation.ts'

export interface OpenedManager {
  readonly manager: WorkerManager
  readonly configured: ConfiguredWorkers
  /** Null if this gateway does not share its workers. */
  readonly shared: SharedWorkers | null
}

/** Nothing runs before `start`. */
export function openManager(host: Host, config: WorkersConfig): OpenedManager {
  const { balance, log } = host
  const controls = workerControls(host.upstream)
  const mesh = host.find(Mesh)
  const isShared = mesh?.shares('workers') === true
  const registry = new Registry({
    ...(isShared && { idOf: sharedWorkerId }),
    balance,
    config,
    discoveryMs: host.kernelConfig.lifecycle.readinessWaitMs,
    publish: (table) => host.publish(WorkerTableReplica, table),
    publishPending: (pending) =>
      host
        .publish(PendingWorkersReplica, pending)
        .catch((err: unknown) => log.error({ err }, 'pending workers not published')),
  })
  const checks = new HealthChecks({
    balance,
    log,
    engineOf: (worker) => registry.engineOf(worker),
    probe: async ({ entry, health }) => {
      const control = controls.controlOf(entry.connectionMode)
      if (control === null) return `no enabled plugin supports ${entry.connectionMode} workers`
      return control.probe(entry, config.health.endpoint, health.timeoutSecs * 1000)
    },
    counter: host.metrics.counter({
      name: 'weir_worker_health_checks_total',
      help: 'Health probes of registered workers.',
      labels: ['worker_type', 'result'],
    }),
    onFailed: (worker) => removals.removeFailed(worker),
  })
  const loads = openLoadMonitor(host, config, registry)
  const jobs = new JobRunner(log, (url) => {
    registry.dropReservation(url)
    shared?.onExpired(url)
  })
  // Workers of a mesh are its records.
  const saved = new SavedWorkers(isShared ? undefined : host.find(Store))
  const maxWorkers = host.kernelConfig.limits.maxWorkers
  const parts: ControlParts = {
    registry,
    jobs,
    checks,
    loads,
    saved,
    balance,
    controls,
    config,
    maxWorkers,
    onRegistered: (url) => shared?.onRegistered(url),
    log,
  }
  const removals = new Removals(parts)
  const registrations = new Registrations(parts)
  const manager = new WorkerManager(parts, registrations, removals)
  const configured = new ConfiguredWorkers(parts, registrations, manager)
  const shared = mesh !== undefined && isShared ? new SharedWorkers(mesh, manager, log) : null
  return { manager, configured, shared }
}

function openLoadMonitor(host: Host, config: WorkersConfig, registry: Registry): LoadMonitor {
  return new LoadMonitor({
    workers: () => registry.workers(),
    balance: host.balance,
    controlOf: workerControls(host.upstream).controlOf,
    intervalSecs: config.loadMonitorIntervalSecs,
    overload: config.overload ?? null,
    isWanted: () => config.engineMetrics || config.overload !== undefined || host.balance.readsLoads,
    publish: (loads) => host.publish(EngineLoadsReplica, loads),
    metrics: config.engineMetrics ? new EngineMetrics(host.metrics) : null,
    log: host.log,
  })
}

export function registryService(manager: WorkerManager, controls: WorkerControls): WorkerRegistryService {
  return {
    register: (body) => manager.register(readSpec(body, controls)),
    remove: (id) => void manager.remove(id),
    // Unfinished registrations are found by id only.
    list: () =>
      manager
        .list(null)
        .workers.filter(({ id }) => manager.isRegistered(id))
        .map((record) => toKnown(record, true)),
    find: (id) => {
      try {
        return toKnown(manager.get(id), manager.isRegistered(id))
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'worker_not_found') return undefined
        throw error
      }
    },
  }
}

function toKnown(record: WorkerRecord, isRegistered: boolean): KnownWorker {
  const { id, url, labels = {}, status, job_status: job, dp_base_url: baseUrl } = record
  return {
    id,
    // Discovery treats all ranks of an engine as one worker.
    url: baseUrl ?? url,
    labels,
    status: isRegistered ? statusOf(status) : job?.status === 'failed' ? 'failed' : 'pending',
  }
}

/** A worker with status failed is still registered and may become ready again. */
function statusOf(status: WorkerRecord['status']): KnownWorker['status'] {
  return status === 'failed' ? 'not_ready' : (status as KnownWorker['status'])
}
