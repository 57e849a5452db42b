/** The workers plugin: registers, watches and removes workers, and publishes the table that all threads route by. */
import { Auth, definePlugin, Store, WorkerRegistry, workerControls } from '#kernel'
import { workersConfig, workersEnable, workersProblems } from './config.ts'
import { checkConfiguredWorkers } from './controls.ts'
import { workersFlags } from './flags.ts'
import { flushCacheRoute } from './flush-cache.ts'
import { getLoadsRoute } from './get-loads.ts'
import { watchModelNeeds } from './model-needs.ts'
import { openManager } from './open-manager.ts'
import { profileRoutes } from './profile.ts'
import { prepareBodyChecks, readPatch, readSpec } from './read-body.ts'
import { workersReadiness } from './readiness.ts'
import { registryService } from './registry-service.ts'
import { workerRoutes } from './routes.ts'
import {
  GetWorker,
  LearnModels,
  ListWorkers,
  PatchWorker,
  RegisterWorker,
  RemoveWorker,
  ReplaceWorker,
} from './thread-commands.ts'

export default definePlugin({
  manifest: {
    name: 'workers',
    version: '0.1.0',
    description: 'Registering, watching and removing workers.',
    provides: [WorkerRegistry],
    usesOptionally: [Auth, Store],
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
    watchModelNeeds(host)
    if (!host.isControl) return
    const manager = openManager(host, config)
    const controls = workerControls(host.upstream)
    let current = config
    host.provide(WorkerRegistry, registryService(manager, controls))
    host.onCommand(LearnModels, (inquiry) => manager.inquiries.learn(inquiry))
    host.onCommand(RegisterWorker, (body) => manager.register(readSpec(body, controls)))
    host.onCommand(ReplaceWorker, ({ id, body }) => manager.replace(id, readSpec(body, controls)))
    host.onCommand(PatchWorker, ({ id, body }) => manager.patch(id, readPatch(body, controls)))
    host.onCommand(RemoveWorker, (id) => manager.remove(id))
    host.onCommand(ListWorkers, (model) => manager.list(model))
    host.onCommand(GetWorker, (id) => manager.get(id))
    const start = () => {
      // Once boot is over, so that neither it nor the first registration waits.
      setImmediate(prepareBodyChecks)
      return manager.start()
    }
    return {
      start: () => checkConfiguredWorkers(controls, config),
      ready: start,
      reload: (next) => {
        checkConfiguredWorkers(controls, next)
        manager.reconfigure(current, next)
        current = next
      },
      stop: () => manager.stop(),
    }
  },
})
