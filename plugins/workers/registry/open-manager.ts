/** Puts the parts of control together: what decides about workers, watches them and asks them for their load. */
import {
  EngineLoadsReplica,
  type Host,
  PendingWorkersReplica,
  Store,
  WorkerTableReplica,
  workerControls,
} from '#kernel'
import type { WorkersConfig } from './config.ts'
import type { ControlParts } from './control-parts.ts'
import { EngineMetrics } from './engine-metrics.ts'
import { HealthChecks } from './health-checks.ts'
import { JobRunner } from './jobs.ts'
import { LoadMonitor } from './load-monitor.ts'
import { WorkerManager } from './manager.ts'
import { Registrations } from './registrations.ts'
import { Registry } from './registry.ts'
import { Removals } from './removals.ts'
import { SavedWorkers } from './saved-workers.ts'

/** For control only; nothing runs before `start`. */
export function openManager(host: Host, config: WorkersConfig): WorkerManager {
  const { balance, log } = host
  const controls = workerControls(host.upstream)
  const registry = new Registry({
    balance,
    config,
    publish: (table) => host.publish(WorkerTableReplica, table),
    publishPending: (pending) => {
      host
        .publish(PendingWorkersReplica, pending)
        .catch((err: unknown) => log.error({ err }, 'the threads could not be told of pending workers'))
    },
  })
  const checks = new HealthChecks({
    balance,
    log,
    engineOf: (worker) => registry.engineOf(worker),
    probe: async ({ entry, health }) => {
      const control = controls.controlOf(entry.connectionMode)
      if (control === null) return `no enabled plugin looks after ${entry.connectionMode} workers`
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
  const jobs = new JobRunner(log, (url) => registry.dropReservation(url))
  const saved = new SavedWorkers(host.find(Store))
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
    log,
  }
  const removals = new Removals(parts)
  return new WorkerManager(parts, new Registrations(parts), removals)
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
