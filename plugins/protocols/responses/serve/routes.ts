/** Routes of the responses API. */
import { type ErrorFormat, type RouteDefinition, tenantOf } from '#kernel'
import { failures } from '../error-format.ts'
import type { Json } from '../json.ts'
import { CreateBody, ResponseObject } from '../wire.ts'
import { acceptBackground } from './background/accept-background.ts'
import { readCreate, type ServeParts, serveCreate } from './run/serve-create.ts'

/** @param onQueued called when a background response waits */
export function createRoute(
  parts: ServeParts,
  errors: ErrorFormat,
  onQueued: (tenant: string) => void,
): RouteDefinition {
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
      return acceptBackground(parts, ctx, request, ctx.bodyJson() as Json).then(() => onQueued(tenantOf(ctx)))
    },
    docs: {
      summary: 'Create a response',
      tag: 'Responses',
      body: CreateBody,
      responses: {
        200: {
          description: 'The response; with `stream`, server-sent events.',
          schema: ResponseObject,
          streams: true,
        },
        ...failures,
      },
    },
  }
}
