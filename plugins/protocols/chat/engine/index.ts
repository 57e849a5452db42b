/** Generations over HTTP workers that speak chat completions: the internal request to a chat body, chunks to events. */
import { definePlugin, Generations } from '#kernel'
import { chatEngine } from './chat-engine.ts'
import { chatEngineConfig } from './config.ts'

export default definePlugin({
  manifest: {
    name: 'chat-engine',
    version: '0.1.0',
    description: 'Generations over HTTP workers that speak chat completions',
    uses: [Generations],
    config: chatEngineConfig,
  },
  register(host, config) {
    host.use(Generations).addEngine(chatEngine(config))
  },
})
