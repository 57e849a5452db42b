/** The workers plugin: registers, watches and removes workers, and publishes the table that all threads route by. */
import { definePlugin, type Host, Store, WorkerTableReplica } from '#kernel'
import {
  GetWorker,
  ListWorkers,
  PatchWorker,
  RegisterWorker,
  RemoveWorker,
  ReplaceWorker,
} from './commands.ts'
import { checkWorkersConfig, type WorkersConfig, workersConfig } from './config.ts'
import type { ControlParts } from './control-parts.ts'
import { flushCacheRoute } from './flush-cache.ts'
import { getLoadsRoute } from './get-loads.ts'
import { HealthChecks } from './health-checks.ts'
import { JobRunner } from './jobs.ts'
import { WorkerManager } from './manager.ts'
import { callOf, probeWorker } from './probe.ts'
import { prepareBodyChecks, readPatch, readSpec } from './read-body.ts'
import { workersReadiness } from './readiness.ts'
import { Registrations } from './registrations.ts'
import { Registry } from './registry.ts'
import { Removals } from './removals.ts'
import { workerRoutes } from './routes.ts'
import { SavedWorkers } from './saved-workers.ts'

export default definePlugin({
  manifest: {
    name: 'workers',
    version: '0.1.0',
    description: 'Registering, watching and removing workers.',
    optionalDependencies: ['storage'],
    config: workersConfig,
  },
  register(host, config) {
    checkWorkersConfig(config)
    for (const route of workerRoutes(host)) host.route(route)
    host.route(flushCacheRoute(host))
    host.route(getLoadsRoute(host))
    host.readiness(() => workersReadiness(host.balance))
    if (!host.isControl) return
    const manager = openManager(host, config)
    host.onCommand(RegisterWorker, (body) => manager.register(readSpec(body)))
    host.onCommand(ReplaceWorker, ({ id, body }) => manager.replace(id, readSpec(body)))
    host.onCommand(PatchWorker, ({ id, body }) => manager.patch(id, readPatch(body)))
    host.onCommand(RemoveWorker, (id) => manager.remove(id))
    host.onCommand(ListWorkers, (model) => manager.list(model))
    host.onCommand(GetWorker, (id) => manager.get(id))
    const start = () => {
      // Once boot is over, so that neither it nor the first registration waits.
      setImmediate(prepareBodyChecks)
      return manager.start()
    }
    return { ready: start, stop: () => manager.stop() }
  },
})

/** Puts control's parts together. */
function openManager(host: Host, config: WorkersConfig): WorkerManager {
  const { balance, log } = host
  const call = callOf(host)
  const registry = new Registry({
    balance,
    config,
    publish: (table) => host.publish(WorkerTableReplica, table),
  })
  const checks = new HealthChecks({
    balance,
    log,
    probe: ({ entry, health }) =>
      probeWorker(call, entry, config.healthCheck.endpoint, health.timeoutSecs * 1000),
    counter: host.metrics.counter({
      name: 'weir_worker_health_checks_total',
      help: 'Health probes of registered workers.',
      labels: ['worker_type', 'result'],
    }),
    onFailed: (worker) => removals.removeFailed(worker),
  })
  const jobs = new JobRunner(log, (url) => registry.dropReservation(url))
  const saved = new SavedWorkers(host.find(Store), log)
  const maxWorkers = host.kernelConfig.limits.maxWorkers
  const parts: ControlParts = { registry, jobs, checks, saved, balance, call, config, maxWorkers, log }
  const removals = new Removals(parts)
  return new WorkerManager(parts, new Registrations(parts), removals)
}
