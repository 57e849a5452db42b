/** Creates the control side of the plugin: the worker manager, and the registry service for other plugins. */
import {
  EngineLoadsReplica,
  type Host,
  type KnownWorker,
  Mesh,
  PendingWorkersReplica,
  Store,
  type WorkerRegistryService,
  WorkerTableReplica,
  workerControls,
} from '#kernel'
import type { WorkersConfig } from './config.ts'
import { ConfiguredWorkers } from './configured-workers.ts'
import type { ControlParts } from './control-parts.ts'
import { EngineChanges } from './engine-changes.ts'
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
import type { Worker } from './worker.ts'
import { workerKey } from './worker-url.ts'
import { readSpec } from './worker-validation.ts'

/** Nothing runs before `start`. @returns `shared` is null if this gateway does not share its workers */
export function openManager(host: Host, config: WorkersConfig) {
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
  const changes = new EngineChanges((worker) => registrations.refresh(worker))
  const checks = new HealthChecks({
    balance,
    log,
    engineOf: (worker) => registry.engineOf(worker),
    probe: async (worker) => {
      const { entry, health } = worker
      const control = controls.controlOf(entry.connectionMode)
      if (control === null) return `no enabled plugin supports ${entry.connectionMode} workers`
      const timeoutMs = health.timeoutSecs * 1000
      const problem = await control.probe(entry, config.health.endpoint, timeoutMs)
      if (problem === null) await changes.check(worker, control, timeoutMs)
      return problem
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
  return {
    manager,
    configured,
    shared,
    service: registryService(manager, parts),
    warning: () => warningOf(registry),
  }
}

/** The first warning about a worker; null without one. */
function warningOf(registry: Registry): string | null {
  const warned = registry.workers().flatMap(({ spec, findings }) => {
    const [warning] = findings.warnings ?? []
    return warning === undefined ? [] : [`${spec.url}: ${warning}`]
  })
  if (warned.length < 2) return warned[0] ?? null
  return `${warned[0]}; and ${warned.length - 1} more workers, see: weir workers list`
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

function registryService(
  manager: WorkerManager,
  { registry, jobs, balance, controls }: ControlParts,
): WorkerRegistryService {
  const toKnown = ({ id, spec: { url }, entry: { labels, slot } }: Worker): KnownWorker => {
    const status = balance.status(slot)
    // A worker with status failed is still registered and may become ready again.
    // The URL is that of the engine: discovery treats all of its ranks as one worker.
    return { id, url, labels, status: status === 'failed' ? 'not_ready' : status }
  }
  return {
    register: (body) => manager.register(readSpec(body, controls)),
    replace: (id, body) => void manager.replace(id, readSpec(body, controls)),
    remove: (id) => void manager.remove(id),
    list: () => registry.workers().map(toKnown),
    find: (id) => {
      const worker = registry.byId(id)
      if (worker !== undefined) return toKnown(worker)
      const reservation = registry.reservationById(id)
      if (reservation === undefined) return undefined
      const { url, labels } = reservation.spec
      const hasFailed = jobs.status(workerKey(url))?.state === 'failed'
      return { id, url, labels, status: hasFailed ? 'failed' : 'pending' }
    },
  }
}
