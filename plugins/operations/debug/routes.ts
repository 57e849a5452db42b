/** GET /debug/requests/{request_id}. */
import { adminErrorFormat, type RouteDefinition } from '#kernel'
import { debugErrors } from './errors.ts'
import { RequestsReply, type RequestView } from './wire.ts'

/** A request of another thread may still be on its way to control: asked once more after this. milliseconds */
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
      ctx.json(200, { requests: [...requests] } satisfies RequestsReply)
    },
    docs: {
      summary: 'What happened to a past request: workers considered, attempts, timings',
      tag: 'Debugging',
      responses: {
        200: { description: 'The latest first.', schema: RequestsReply },
        404: { description: 'Not remembered, or not any more.' },
      },
    },
  }
}
