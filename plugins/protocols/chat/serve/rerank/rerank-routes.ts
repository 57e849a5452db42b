/** The two rerank routes: what comes in and goes out. */
import { apiErrorFormat, type Host, type RouteDefinition } from '#kernel'
import { RerankReply, RerankRequest, V1RerankRequest } from '../../wire/rerank.ts'
import { failures } from '../inference-routes.ts'
import { rerank, v1Rerank } from './rerank.ts'

const responses: RouteDefinition['docs']['responses'] = {
  200: { description: 'Scored documents, best first.', schema: RerankReply },
  500: { description: "The worker's answer is no list of scored documents." },
  ...failures,
}

export function rerankRoutes(host: Host): RouteDefinition[] {
  return [
    {
      method: 'POST',
      path: '/rerank',
      access: 'api',
      errors: apiErrorFormat,
      endpoint: 'rerank',
      handler: (ctx) => rerank(host, ctx),
      docs: { summary: 'Rank documents by a query', tag: 'Inference', body: RerankRequest, responses },
    },
    {
      method: 'POST',
      path: '/v1/rerank',
      access: 'api',
      errors: apiErrorFormat,
      endpoint: 'rerank',
      handler: (ctx) => v1Rerank(host, ctx),
      docs: {
        summary: 'Rank all documents by a query',
        tag: 'Inference',
        body: V1RerankRequest,
        responses,
      },
    },
  ]
}
