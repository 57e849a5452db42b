/** The workers plugin: registers, health-checks and removes workers, and publishes the table that all threads route by. */
import {
  Auth,
  definePlugin,
  Mesh,
  type PendingWorkers,
  PendingWorkersReplica,
  type ReplicaView,
  Store,
  type WorkerBalance,
  WorkerRegistry,
  workerControls,
} from '#kernel'
import { saltCache } from './cache-salt.ts'
import { workersConfig, workersEnable, workersProblems } from './config.ts'
import { flushCacheRoute, profileRoutes } from './engine-calls.ts'
import { workersFlags } from './flags.ts'
import { getLoadsRoute } from './get-loads.ts'
import { discoverRequestedModels } from './model-inquiries.ts'
import { openManager } from './open-manager.ts'
import { workerRoutes } from './routes.ts'
import {
  DiscoverWorker,
  GetWorker,
  LearnModels,
  ListWorkers,
  PatchWorker,
  RegisterWorker,
  RemoveWorker,
  ReplaceWorker,
} from './thread-commands.ts'
import { checkConfiguredWorkers, readPatch, readSpec } from './worker-validation.ts'

export default definePlugin({
  manifest: {
    name: 'workers',
    version: '0.1.0',
    description: 'Registers workers, checks their health and removes them.',
    provides: [WorkerRegistry],
    usesOptionally: [Auth, Mesh, Store],
    config: workersConfig,
    flags: workersFlags,
    reloads: ['urls', 'workers'],
  },
  check: workersProblems,
  enables: workersEnable,
  register(host, config) {
    for (const route of workerRoutes(host)) host.route(route)
    host.route(flushCacheRoute(host))
    host.route(getLoadsRoute(host))
    for (const route of profileRoutes(host)) host.route(route)
    host.readiness(() => workersReadiness(host.balance))
    const pending = host.replica(PendingWorkersReplica)
    host.readiness(() => pendingReadiness(pending), { isStartup: true })
    discoverRequestedModels(host)
    if (config.cacheSalt === 'tenant')
      // Late: other hooks see the body as the client sent it.
      host.hook('onUpstreamRequest', saltCache, {
        scope: 'all',
        order: 'late',
        routes: ({ access }) => access === 'api',
      })
    if (!host.isControl) return
    const { manager, configured, shared, service, warning } = openManager(host, config)
    host.startupWarning(warning)
    const changes = shared ?? manager
    const controls = workerControls(host.upstream)
    host.provide(WorkerRegistry, service)
    host.onCommand(LearnModels, (credential) => manager.inquiries.learn(credential))
    host.onCommand(RegisterWorker, (body) => changes.register(readSpec(body, controls)))
    host.onCommand(ReplaceWorker, ({ id, body }) => changes.replace(id, readSpec(body, controls)))
    host.onCommand(PatchWorker, ({ id, body }) => changes.patch(id, readPatch(body, controls)))
    host.onCommand(RemoveWorker, (id) => changes.remove(id))
    host.onCommand(ListWorkers, (query) => manager.list(query))
    host.onCommand(DiscoverWorker, (body) => manager.discover(readSpec(body, controls)))
    host.onCommand(GetWorker, (id) => manager.get(id))
    const start = async () => {
      await configured.start()
      manager.start()
      shared?.start()
    }
    return {
      start: () => checkConfiguredWorkers(controls, config),
      ready: start,
      planReload: (next) => {
        checkConfiguredWorkers(controls, next)
        return configured.plan(next)
      },
      reload: (next) => {
        checkConfiguredWorkers(controls, next)
        configured.reload(next)
      },
      stop: () => manager.stop(),
    }
  },
})

/** One ready regular worker is enough, or one prefill and one decode worker. @returns why not, or null */
function workersReadiness(balance: Pick<WorkerBalance, 'workers' | 'status'>): string | null {
  const hasReady = (type: string) =>
    balance.workers.some((worker) => worker.workerType === type && balance.status(worker.slot) === 'ready')
  const isReady = hasReady('regular') || (hasReady('prefill') && hasReady('decode'))
  return isReady ? null : 'insufficient healthy workers'
}

/** Every configured worker must have responded once. @returns how many have not, or null */
function pendingReadiness({ version, current }: ReplicaView<PendingWorkers>): string | null {
  // Nothing is published before control has read the configuration.
  if (version === 0) return 'workers not yet registered'
  const { configured, configuredPending } = current
  return configuredPending === 0
    ? null
    : `${configuredPending} of ${configured} configured workers not yet registered`
}
