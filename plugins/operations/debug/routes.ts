/** GET /debug/requests/{request_id}. */
import { adminErrorFormat, type RouteDefinition } from '#kernel'
import { debugErrors } from './errors.ts'
import { RequestsResponse, type RequestView } from './wire.ts'

/** Delay before a second lookup, because records of other threads arrive late. Milliseconds. */
const SECOND_LOOK_MS = 120

export function requestRoute(find: (id: string) => Promise<readonly RequestView[]>): RouteDefinition {
  return {
    method: 'GET',
    path: '/debug/requests/:request_id',
    access: 'admin',
    errors: adminErrorFormat,
    handler: async (ctx) => {
      const id = ctx.param('request_id')
      let requests = await find(id)
      if (requests.length === 0) {
        await new Promise((resolve) => setTimeout(resolve, SECOND_LOOK_MS))
        requests = await find(id)
      }
      if (requests.length === 0) throw debugErrors.request_not_found(id)
      ctx.json(200, { requests: [...requests] } satisfies RequestsResponse)
    },
    docs: {
      summary: 'Show a past request: candidate workers, attempts, timings',
      tag: 'Debugging',
      responses: {
        200: { description: 'Matching requests, latest first.', schema: RequestsResponse },
        404: { description: 'The request is unknown or its record has expired.' },
      },
    },
  }
}
