/** Generations over workers that speak Messages, such as the vendor's own service. */
import { definePlugin, Generations } from '#kernel'
import { MESSAGES_HEADERS } from '#shared'
import { messagesEngineConfig } from './config.ts'
import { messagesEngine } from './messages-engine.ts'

export default definePlugin({
  manifest: {
    name: 'messages-engine',
    version: '0.1.0',
    description: 'Generations over HTTP workers that speak the Messages format',
    uses: [Generations],
    config: messagesEngineConfig,
  },
  register(host, config) {
    host.use(Generations).addEngine(messagesEngine(config))
    // Of every request, whatever its route: a chat may name betas for its worker.
    host.hook('onRequest', () => {}, { scope: 'all', routes: () => false, headers: MESSAGES_HEADERS })
  },
})
