/** The chat plugin: the inference routes of the OpenAI API and of engines, and the model list. */
import { Auth, definePlugin, Embeddings, Generations, ModelTargets } from '#kernel'
import { chatConfig } from './config.ts'
import { chatFlags } from './flags.ts'
import { inferenceRoutes } from './serve/inference-routes.ts'
import { infoRoutes, modelRoutes } from './serve/models/info-routes.ts'
import { rerankRoutes } from './serve/rerank.ts'

export default definePlugin({
  manifest: {
    name: 'chat',
    version: '0.1.0',
    description: 'Chat, completions, generation, embeddings, classification and reranking.',
    uses: [Generations],
    usesOptionally: [Auth, Embeddings, ModelTargets],
    config: chatConfig,
    flags: chatFlags,
  },
  enables: () => ['auth'],
  register(host, config) {
    for (const route of inferenceRoutes(host, config)) host.route(route)
    for (const route of rerankRoutes(host)) host.route(route)
    for (const route of infoRoutes(host)) host.route(route)
    for (const route of modelRoutes(host, config)) host.route(route)
  },
})
