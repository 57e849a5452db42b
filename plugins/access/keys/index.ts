/** The keys plugin: keys that are created and revoked at runtime, in the shared store, a mesh or the local store. */
import { definePlugin, Keys, Mesh, SharedStore, Store } from '#kernel'
import { findRecordStore } from '#shared'
import { keysConfig } from './config.ts'
import { keysErrors } from './errors.ts'
import { KeyKeeper } from './key-keeper.ts'
import { keyRoutes } from './routes.ts'
import { SharedKeys } from './shared-keys.ts'
import { CreateKey, RevokeKey, type StoredKey, StoredKeysReplica } from './stored-key.ts'

export default definePlugin({
  manifest: {
    name: 'keys',
    version: '0.1.0',
    description: 'API keys that are created, listed and revoked at runtime, by /keys and `weir keys`.',
    uses: [Keys],
    usesOptionally: [Mesh, SharedStore, Store],
    degradable: [SharedStore],
    config: keysConfig,
  },
  enables: (_, isEnabled) => (isEnabled('postgres') ? ['auth'] : ['auth', 'storage']),
  register(host, config) {
    const ring = host.use(Keys)
    const { store, isShared } = findRecordStore(host)
    if (host.kernelConfig.auth !== 'off' && !ring.hasAdmin) throw keysErrors.no_admin_key()
    const replica = host.replica(StoredKeysReplica)
    ring.useStored(replica.current)
    replica.onChange((next) => ring.useStored(next))
    for (const route of keyRoutes(host, ring)) host.route(route)
    if (!host.isControl) return
    const mesh = host.find(Mesh)
    const parts = {
      config,
      publish: (keys: readonly StoredKey[] | null) => host.publish(StoredKeysReplica, keys),
      log: host.log,
    }
    const sharing = mesh?.shares('keys') ? mesh : null
    const keeper =
      sharing !== null && !isShared
        ? new SharedKeys({ ...parts, mesh: sharing })
        : new KeyKeeper({ ...parts, store, isShared, channel: sharing?.channel('api-keys') ?? null })
    host.onCommand(CreateKey, (key) => keeper.create(key))
    host.onCommand(RevokeKey, (id) => keeper.revoke(id))
    return { start: () => keeper.start(), stop: () => keeper.stop() }
  },
})
