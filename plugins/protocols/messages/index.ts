/** The messages plugin: the Anthropic Messages API over every kind of worker. */
import { definePlugin, Generations, Tokenizers, ToolLoop } from '#kernel'
import { MESSAGES_VERSION_HEADER } from '#shared'
import { messagesConfig } from './config.ts'
import type { CreateParts } from './serve/create-message.ts'
import { Pings } from './serve/message-stream.ts'
import { MODELS_PATH, toModelPage } from './serve/model-page.ts'
import { addRequestId } from './serve/native-relay.ts'
import { messagesRoutes } from './serve/routes.ts'

export default definePlugin({
  manifest: {
    name: 'messages',
    version: '0.1.0',
    description: 'The Messages API: passed through to workers that speak it, translated for all others.',
    uses: [Generations],
    usesOptionally: [Tokenizers, ToolLoop],
    config: messagesConfig,
  },
  enables: () => ['auth'],
  register(host, config) {
    const pings = new Pings(config.pingMs)
    const parts: CreateParts = {
      host,
      config,
      pings,
      tokenizers: host.find(Tokenizers),
      toolLoop: host.find(ToolLoop) ?? null,
    }
    for (const route of messagesRoutes(parts)) host.route(route)
    host.hook('onResponse', addRequestId)
    host.hook('onResponse', toModelPage, {
      scope: 'all',
      routes: ({ path }) => path === MODELS_PATH,
      headers: [MESSAGES_VERSION_HEADER],
    })
    return { stop: () => pings.close() }
  },
})
