/** The proxy plugin: inference over HTTP workers, and what there is to know about their models. */
import { definePlugin } from '#kernel'
import { proxyConfig } from './config.ts'
import { inferenceRoutes } from './inference-routes.ts'
import { infoRoutes, modelsRoute } from './info-routes.ts'
import { rerankRoutes } from './rerank-routes.ts'

export default definePlugin({
  manifest: {
    name: 'proxy',
    version: '0.1.0',
    description: 'Chat, completions, generation, embeddings, classification and reranking by workers.',
    optionalDependencies: ['auth'],
    config: proxyConfig,
  },
  register(host, config) {
    const chosen = host.slot<number>()
    // The first ready worker answers the information routes; all other routes leave the slot empty.
    host.hook('onPick', (ctx) => chosen.get(ctx))
    for (const route of inferenceRoutes(host, config)) host.route(route)
    for (const route of rerankRoutes(host)) host.route(route)
    for (const route of infoRoutes(host, chosen)) host.route(route)
    host.route(modelsRoute(host, config))
  },
})
