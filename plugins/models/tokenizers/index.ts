/** The tokenizers plugin: vocabularies and chat templates, for engines that take token ids and for counting tokens. */
import {
  definePlugin,
  Mesh,
  Store,
  Tokenizers,
  type WorkerEntry,
  type WorkerTable,
  WorkerTableReplica,
} from '#kernel'
import { TokenizersReplica } from './commands.ts'
import { type TokenizersConfig, tokenizersConfig } from './config.ts'
import { openControl, workerTokenizers } from './open-control.ts'
import { tokenizerRoutes } from './routes.ts'
import { Service } from './service.ts'

export default definePlugin({
  manifest: {
    name: 'tokenizers',
    version: '0.1.0',
    description: 'Tokenizers and chat templates: tokenize, detokenize, and render prompts as token ids.',
    provides: [Tokenizers],
    usesOptionally: [Mesh, Store],
    config: tokenizersConfig,
  },
  register(host, config) {
    const service = new Service(host)
    host.provide(Tokenizers, service)
    for (const route of tokenizerRoutes(host, service)) host.route(route)
    host.replica(TokenizersReplica).onChange(({ tokenizers }) => service.update(tokenizers))
    const table = host.replica(WorkerTableReplica)
    host.readiness(() => tokenizersReadiness(service, config, table.current), { isStartup: true })
    const control = host.isControl ? openControl(host, config, service.bundles) : null
    return {
      start: () => service.update(host.replica(TokenizersReplica).current.tokenizers),
      ready: () => control?.registry.start(),
      stop: async () => {
        await Promise.all([control?.encoders.close(), control?.loader.close()])
        await control?.registry.stop()
        await control?.bundles.close()
      },
    }
  },
})

/**
 * Waits for the configured tokenizers, and with `autoload` for those of engines that take token ids.
 * @returns why the gateway is not ready, or null
 */
function tokenizersReadiness(
  service: Service,
  { autoload, load }: TokenizersConfig,
  { workers }: WorkerTable,
): string | null {
  const needing = autoload ? workers.filter(({ connectionMode }) => connectionMode === 'grpc') : []
  const serves = (worker: WorkerEntry) => service.bundles.some((source) => source.covers(worker))
  const needed = [...load, ...workerTokenizers({ workers: needing }, serves)]
  const loaded = new Set(service.list().map(({ name }) => name))
  return needed.every(({ name }) => loaded.has(name)) ? null : 'tokenizer not yet registered'
}
