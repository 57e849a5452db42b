/** Routes of the responses API. @source API spec 4.1 */
import type { ErrorFormat, RouteDefinition } from '#kernel'
import { acceptBackground } from './background/accept-background.ts'
import type { Json } from './read/fields.ts'
import { readCreate, type ServeParts, serveCreate } from './run/serve-create.ts'
import { CreateBody, ResponseReply } from './wire.ts'

export const failures: RouteDefinition['docs']['responses'] = {
  400: { description: 'A field is missing or wrong, or names something that is not there.' },
  404: { description: 'No worker serves the model, or there is no such response or conversation.' },
  429: { description: 'Too many requests.' },
  500: { description: 'The worker, a tool or the store failed.' },
  503: { description: 'No worker that serves the model is ready.' },
}

/** @param onQueued called when a background response waits */
export function createRoute(parts: ServeParts, errors: ErrorFormat, onQueued: () => void): RouteDefinition {
  return {
    method: 'POST',
    path: '/v1/responses',
    access: 'api',
    errors,
    endpoint: 'responses',
    requestIdPrefix: 'req-',
    handler: (ctx) => {
      const request = readCreate(parts, ctx.bodyJson())
      if (!request.background) return serveCreate(parts, ctx, request)
      return acceptBackground(parts, ctx, request, ctx.bodyJson() as Json).then(onQueued)
    },
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
