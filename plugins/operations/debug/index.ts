/** The debug plugin: records of past requests, and the Server-Timing header. */
import {
  adminErrorFormat,
  defineCommand,
  definePlugin,
  defineReplica,
  type RequestContext,
  RequestSteps,
  type RouteDefinition,
  settlesWithin,
  Type,
} from '#kernel'
import { BatchSender } from '#shared'
import { debugConfig } from './config.ts'
import { debugErrors } from './errors.ts'
import { RequestRecorder, toKnownId } from './record.ts'
import { type RequestFilter, RequestLog, type RequestPage } from './request-log.ts'
import { ASK_HEADER, ServerTiming } from './server-timing.ts'
import { RequestPageResponse, RequestsResponse, type RequestView } from './wire.ts'

const RememberRequests = defineCommand<readonly RequestView[], void>('debug.remember')
const FindRequests = defineCommand<string, readonly RequestView[]>('debug.find')
const ListRequests = defineCommand<RequestFilter, RequestPage>('debug.list')

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/** Number of lookups that found nothing: at each change the threads send the records that they hold back for a batch. */
const SearchesReplica = defineReplica('debug.searches', 0)
/** A thread that does not answer in time is busy; its records are missing then. Milliseconds. */
const MAX_WAIT_MS = 120

export default definePlugin({
  manifest: {
    name: 'debug',
    version: '0.1.0',
    description: 'GET /debug/requests, /debug/requests/{request_id} and the Server-Timing header.',
    provides: [RequestSteps],
    config: debugConfig,
  },
  register(host, config) {
    const log = new RequestLog(config.keepRequests, config.keepSecs * 1_000)
    host.onCommand(RememberRequests, (views) => log.add(views))
    const searches = host.replica(SearchesReplica)
    host.onCommand(FindRequests, async (id) => {
      const found = log.find(id)
      if (found.length > 0) return found
      await settlesWithin(host.publish(SearchesReplica, searches.current + 1), MAX_WAIT_MS)
      return log.find(id)
    })
    host.onCommand(ListRequests, (filter) => log.page(filter))
    const inference = { scope: 'all', routes: (route: RouteDefinition) => route.access === 'api' } as const

    const recorder = new RequestRecorder(host)
    host.provide(RequestSteps, recorder)
    const sender = new BatchSender<RequestView>(
      'debug records',
      (views) => host.command(RememberRequests, views),
      host.log,
    )
    searches.onChange(() => sender.sendNow())
    host.hook('onAttempt', (ctx, report) => recorder.noteAttempt(ctx, report), inference)
    host.hook('onDone', (ctx) => sender.add(recorder.toView(ctx)), { ...inference, order: 'late' })
    host.route(listRoute((filter) => host.command(ListRequests, filter)))
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
      const requests = await find(id)
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

function listRoute(list: (filter: RequestFilter) => Promise<RequestPage>): RouteDefinition {
  const text = (description: string) => Type.Optional(Type.String({ description }))
  return {
    method: 'GET',
    path: '/debug/requests',
    access: 'admin',
    errors: adminErrorFormat,
    handler: async (ctx) => {
      const { requests, hasMore, last } = await list(readFilter(ctx))
      const last_id = last === null ? null : String(last)
      ctx.json(200, { requests: [...requests], has_more: hasMore, last_id } satisfies RequestPageResponse)
    },
    docs: {
      summary: 'List past requests, latest first',
      tag: 'Debugging',
      query: {
        tenant: text('Only requests of this tenant.'),
        model: text('Only requests for this model.'),
        worker: text('Only requests with an attempt at this worker: its id or URL.'),
        status: Type.Optional(
          Type.String({
            pattern: '^[1-5](?:\\d\\d|xx)$',
            description: 'Only requests with this status, such as `404` or `5xx`.',
          }),
        ),
        limit: Type.Optional(
          Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT, description: 'Page size.' }),
        ),
        after: Type.Optional(
          Type.Integer({ minimum: 0, description: 'Cursor: `last_id` of the page before.' }),
        ),
      },
      responses: {
        200: { description: 'A page of requests.', schema: RequestPageResponse },
        400: { description: 'A value of the query is invalid.' },
      },
    },
  }
}

function readFilter(ctx: RequestContext): RequestFilter {
  const read = (param: string) => ctx.queryParam(param) || null
  const after = read('after')
  return {
    tenant: read('tenant'),
    model: read('model'),
    worker: read('worker'),
    status: read('status'),
    limit: Number(read('limit') ?? DEFAULT_LIMIT),
    after: after === null ? null : Number(after),
  }
}
