/** The conversations plugin: items that outlive single responses, stored by the history plugin. */
import { definePlugin, History, Type } from '#kernel'
import { conversationRoutes } from './routes.ts'

export default definePlugin({
  manifest: {
    name: 'conversations',
    version: '0.1.0',
    description: 'Conversations and their items over the API.',
    uses: [History],
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    for (const route of conversationRoutes(host.use(History))) host.route(route)
  },
})
