/** The mesh plugin: several gateways that share workers, limits, modules and what they know of caches. */
import { hostname } from 'node:os'
import { definePlugin, type Host, Mesh, MeshEngine, readVersion, Store, WorkerTableReplica } from '#kernel'
import { meshConfig } from './config.ts'
import { LoadExchange } from './load-exchange.ts'
import { LocalEngine } from './local-engine.ts'
import { handleMeshCommands } from './mesh-commands.ts'
import { declareMeshMetrics } from './mesh-metrics.ts'
import { SharedMesh } from './mesh-service.ts'
import { meshRoutes } from './routes.ts'

/** Versions of the records that this release reads and writes. */
const PROTOCOLS = [1]
const SECRET_CHECK_CHARACTERS = 12
/** A reload changes the configuration. */
const DIGESTS_MS = 5_000

export default definePlugin({
  manifest: {
    name: 'mesh',
    version: '0.1.0',
    description: 'Several gateways that act as one: the /ha routes, and what mesh-valkey shares.',
    provides: [Mesh],
    usesOptionally: [MeshEngine, Store],
    config: meshConfig,
  },
  enables: (_, isEnabled) => (isEnabled('mesh-valkey') ? ['limits'] : ['limits', 'storage']),
  register(host, config) {
    for (const route of meshRoutes(host)) host.route(route)
    if (!host.isControl) return
    let isLeaving = false
    let digests: Readonly<Record<string, string>> = {}
    let digesting: NodeJS.Timeout | undefined
    const open = host.find(MeshEngine)
    const engine = open?.(config.mesh) ?? new LocalEngine(host.find(Store))
    const mesh = new SharedMesh({
      engine,
      store: host.find(Store) ?? null,
      isShared: open !== undefined,
      name: config.name ?? hostname(),
      config,
      about: () => ({
        address: config.address ?? addressOf(host),
        software: readVersion(),
        protocols: PROTOCOLS,
        status: isLeaving || host.isDraining ? 'Leaving' : 'Alive',
        position: mesh.data.known,
        inFlight: host.balance.workers.reduce((sum, { slot }) => sum + host.balance.inFlight(slot), 0),
        config: digests,
        secretCheck:
          mesh.digestKey('secret check')?.toString('base64url').slice(0, SECRET_CHECK_CHARACTERS) ?? '',
      }),
      log: host.log,
    })
    host.provide(Mesh, mesh)
    declareMeshMetrics(host, mesh, engine)
    const readDigests = async () => {
      const key = mesh.digestKey('configuration')
      if (key !== null) digests = await host.configDigests(key)
    }
    handleMeshCommands(host, mesh, engine.kind, () => {
      isLeaving = true
      mesh.membership.renewNow()
      // Not before the response is written: without a settle time connections are closed at once.
      setImmediate(() => host.shutdown('POST /ha/shutdown'))
    })
    const loads = mesh.shares('workers') ? new LoadExchange(mesh, host.balance) : null
    if (loads !== null) host.replica(WorkerTableReplica).onChange(() => loads.follow())
    return {
      start: async () => {
        await readDigests()
        await mesh.start()
        digesting = setInterval(() => void readDigests().catch(() => undefined), DIGESTS_MS)
        loads?.start()
      },
      stop: async () => {
        clearInterval(digesting)
        loads?.stop()
        await mesh.stop()
      },
    }
  },
})

function addressOf({ kernelConfig: { host, port } }: Host): string {
  const isAny = host === '0.0.0.0' || host === '::'
  return `${isAny ? hostname() : host}:${port}`
}
