/** The messages plugin: the Anthropic Messages API over every kind of worker. */
import { definePlugin, Generations, Tokenizers, ToolLoop } from '#kernel'
import { MESSAGES_VERSION_HEADER } from '#shared'
import { messagesConfig } from './config.ts'
import type { CreateParts } from './serve/create-message.ts'
import { type MessageHead, MODELS_PATH, ModelNames, readHead, toModelPage } from './serve/model-names.ts'
import { addRequestId } from './serve/native-relay.ts'
import { Pings } from './serve/pings.ts'
import { PromptCounter } from './serve/prompt-counter.ts'
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
    const names = new ModelNames(config.models)
    const heads = host.slot<MessageHead>()
    let counter: PromptCounter | null = null
    const parts: CreateParts = {
      host,
      config,
      headOf: (ctx) => {
        const head = heads.get(ctx)
        // Another hook may have changed the model since.
        return head !== undefined && head.model === ctx.peek().model ? head : readHead(ctx, names)
      },
      pings,
      get counter() {
        counter ??= new PromptCounter(host.balance, host.find(Tokenizers) ?? null)
        return counter
      },
      get toolLoop() {
        return host.find(ToolLoop) ?? null
      },
    }
    for (const route of messagesRoutes(parts)) host.route(route)
    // Before hooks that depend on the model, such as its limits.
    if (Object.keys(config.models).length > 0) {
      host.hook('onRequest', (ctx) => void heads.set(ctx, readHead(ctx, names)), {
        routes: ({ endpoint }) => endpoint === 'messages' || endpoint === 'count_tokens',
      })
    }
    host.hook('onResponse', addRequestId)
    host.hook('onResponse', (ctx, response) => toModelPage(names, ctx, response), {
      scope: 'all',
      routes: ({ path }) => path === MODELS_PATH,
      headers: [MESSAGES_VERSION_HEADER],
    })
    return { stop: () => pings.close() }
  },
})
