/** The tokenizers plugin: vocabularies and chat templates, for engines that take token ids and for whoever counts them. */
import { Store, Tokenizers } from '#contracts'
import { definePlugin, defineValidator, type Host, WorkerTableReplica } from '#kernel'
import {
  AddTokenizer,
  EncodeTexts,
  EnsureTokenizer,
  RemoveTokenizer,
  StatusOfTokenizer,
  TokenizersReplica,
} from './commands.ts'
import { type TokenizersConfig, tokenizersConfig } from './config.ts'
import { EncoderMetrics } from './encoder-metrics.ts'
import { EncoderPool } from './encoder-pool.ts'
import { Registry } from './registry.ts'
import { tokenizerRoutes } from './routes.ts'
import { SavedTokenizers } from './saved-tokenizers.ts'
import { Service } from './service.ts'
import { AddTokenizerSchema } from './wire.ts'
import { workerTokenizers } from './worker-tokenizers.ts'

const addValidator = defineValidator(AddTokenizerSchema)

export default definePlugin({
  manifest: {
    name: 'tokenizers',
    version: '0.1.0',
    description: 'Tokenizers and chat templates: tokenize, detokenize, prompts as token ids.',
    provides: [Tokenizers],
    usesOptionally: [Store],
    config: tokenizersConfig,
  },
  register(host, config) {
    const service = new Service(host)
    host.provide(Tokenizers, service)
    for (const route of tokenizerRoutes(host, service)) host.route(route)
    host.replica(TokenizersReplica).onChange(({ tokenizers }) => service.update(tokenizers))
    const control = host.isControl ? openControl(host, config) : null
    return {
      start: () => service.update(host.replica(TokenizersReplica).current.tokenizers),
      ready: () => control?.registry.start(),
      stop: async () => {
        await control?.pool.close()
        await control?.registry.stop()
      },
    }
  },
})

function openControl(host: Host, config: TokenizersConfig): { registry: Registry; pool: EncoderPool } {
  const metrics = new EncoderMetrics(host.metrics)
  const pool: EncoderPool = new EncoderPool({ host, config, metrics, places: () => registry.places() })
  const registry = new Registry({
    config,
    pool,
    saved: new SavedTokenizers(host.find(Store)),
    log: host.log,
    publish: (tokenizers) => host.publish(TokenizersReplica, { tokenizers }),
  })
  host.onCommand(AddTokenizer, ({ body, asker }) => {
    const { name, source, chat_template_path: chatTemplatePath } = addValidator.parse(body)
    return registry.add({ name, source, chatTemplatePath: chatTemplatePath ?? undefined }, asker)
  })
  host.onCommand(EnsureTokenizer, (request) => registry.ensure(request))
  host.onCommand(StatusOfTokenizer, (idOrName) => registry.status(idOrName))
  host.onCommand(RemoveTokenizer, ({ idOrName, asker }) => registry.remove(idOrName, asker))
  host.onCommand(EncodeTexts, (items) => pool.encode(items))
  if (config.autoload)
    host.replica(WorkerTableReplica).onChange((table) => {
      for (const request of workerTokenizers(table)) registry.ensure(request)
    })
  return { registry, pool }
}
