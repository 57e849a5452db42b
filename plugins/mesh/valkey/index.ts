/** The mesh-valkey plugin: the engine of the mesh, in Valkey or Redis. */
import { definePlugin, MeshEngine } from '#kernel'
import { valkeyConfig } from './config.ts'
import { ValkeyEngine } from './valkey-engine.ts'

export default definePlugin({
  manifest: {
    name: 'mesh-valkey',
    version: '0.1.0',
    description: 'Shares the records of the mesh with other gateways, in Valkey or Redis.',
    provides: [MeshEngine],
    config: valkeyConfig,
  },
  *check({ url, caFile, sentinels, cluster }) {
    if (cluster && sentinels.length > 0)
      yield {
        path: ['sentinels'],
        text: 'must be empty with cluster: a cluster replaces its primaries without them',
      }
    if (caFile !== null && !/^(rediss|valkeys):/.test(url))
      yield { path: ['caFile'], text: 'requires TLS: url must begin with rediss: or valkeys:' }
  },
  enables: () => ['mesh'],
  register(host, config) {
    if (!host.isControl) return
    host.provide(MeshEngine, (mesh) => {
      const onError = (err: Error) => host.log.debug({ err }, 'mesh engine connection failed')
      return new ValkeyEngine(config, `weir:{${mesh}}:`, onError)
    })
  },
})
