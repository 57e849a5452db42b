/** The debug plugin: records of past requests, and the Server-Timing header. */
import { adminErrorFormat, defineCommand, definePlugin, type RouteDefinition } from '#kernel'
import { debugConfig } from './config.ts'
import { debugErrors } from './errors.ts'
import { RequestRecorder, toKnownId } from './record.ts'
import { RecordSender, RequestLog } from './request-log.ts'
import { ASK_HEADER, ServerTiming } from './server-timing.ts'
import { RequestsResponse, type RequestView } from './wire.ts'

const RememberRequests = defineCommand<readonly RequestView[], void>('debug.remember')
const FindRequests = defineCommand<string, readonly RequestView[]>('debug.find')

/** Delay before a second lookup, because records of other threads arrive late. Milliseconds. */
const SECOND_LOOK_MS = 120

export default definePlugin({
  manifest: {
    name: 'debug',
    version: '0.1.0',
    description: 'GET /debug/requests/{request_id} and the Server-Timing header.',
    config: debugConfig,
  },
  register(host, config) {
    const log = new RequestLog(config.keepRequests, config.keepSecs * 1_000)
    host.onCommand(RememberRequests, (views) => log.add(views))
    host.onCommand(FindRequests, (id) => log.find(id))
    const inference = { scope: 'all', routes: (route: RouteDefinition) => route.access === 'api' } as const

    const recorder = new RequestRecorder(host)
    const sender = new RecordSender((views) => host.command(RememberRequests, views), host.log)
    host.hook('onAttempt', (ctx, report) => recorder.noteAttempt(ctx, report), inference)
    host.hook('onDone', (ctx) => sender.add(recorder.toView(ctx)), { ...inference, order: 'late' })
    host.route(requestRoute((id) => host.command(FindRequests, toKnownId(id))))

    if (config.serverTiming === 'off') return
    const timing = new ServerTiming(host, config.serverTiming === 'always')
    host.hook('onUpstreamRequest', (ctx) => timing.noteAttempt(ctx), inference)
    // Needs status and headers only, so that no body is buffered.
    host.hook('onResponse', (ctx, response) => timing.addHeader(ctx, response), {
      ...inference,
      order: 'late',
      headers: [ASK_HEADER],
      maxResponseBytes: 0,
    })
  },
})

function requestRoute(find: (id: string) => Promise<readonly RequestView[]>): RouteDefinition {
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
