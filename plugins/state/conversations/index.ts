/** The conversations plugin: items that outlive single responses, kept by history. */
import { definePlugin, History } from '#kernel'
import { conversationsConfig } from './config.ts'
import { conversationRoutes } from './routes.ts'

export default definePlugin({
  manifest: {
    name: 'conversations',
    version: '0.1.0',
    description: 'Conversations and their items over the API.',
    uses: [History],
    config: conversationsConfig,
  },
  register(host) {
    for (const route of conversationRoutes(host.use(History))) host.route(route)
  },
})
