/** Routes of the responses API. @source API spec 4.1 */
import { type ErrorFormat, type RouteDefinition, Type } from '#kernel'
import { readCreate, type ServeParts, serveCreate } from './run/serve-create.ts'
import { CreateBody, ResponseReply } from './wire.ts'

export const failures: RouteDefinition['docs']['responses'] = {
  400: { description: 'A field is missing or wrong, or names something that is not there.' },
  404: { description: 'No worker serves the model, or there is no such response or conversation.' },
  429: { description: 'Too many requests.' },
  500: { description: 'The worker, a tool or the store failed.' },
  503: { description: 'No worker that serves the model is ready.' },
}

export function createRoute(parts: ServeParts, errors: ErrorFormat): RouteDefinition {
  return {
    method: 'POST',
    path: '/v1/responses',
    access: 'api',
    errors,
    endpoint: 'responses',
    requestIdPrefix: 'req-',
    handler: (ctx) => serveCreate(parts, ctx, readCreate(parts, ctx.bodyJson())),
    docs: {
      summary: 'Create a response',
      tag: 'Responses',
      body: CreateBody,
      responses: {
        200: { description: 'The response; with `stream`, server-sent events.', schema: ResponseReply },
        ...failures,
      },
    },
  }
}

export const ResponsePath = { response_id: Type.String() }
