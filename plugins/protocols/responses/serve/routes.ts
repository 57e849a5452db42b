/** Routes of the responses API. */
import type { ErrorFormat, RouteDefinition } from '#kernel'
import { CreateBody, ResponseReply } from '../wire.ts'
import { acceptBackground } from './background/accept-background.ts'
import type { Json } from './read/fields.ts'
import { failures } from './route-failures.ts'
import { readCreate, type ServeParts, serveCreate } from './run/serve-create.ts'

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
        200: {
          description: 'The response; with `stream`, server-sent events.',
          schema: ResponseReply,
          streams: true,
        },
        ...failures,
      },
    },
  }
}
