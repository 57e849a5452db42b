/** The debug plugin: records of past requests, and the Server-Timing header. */
import { defineCommand, definePlugin, type RouteDefinition } from '#kernel'
import { debugConfig } from './config.ts'
import { RequestRecorder, toKnownId } from './record.ts'
import { RecordSender } from './record-sender.ts'
import { RequestLog } from './request-log.ts'
import { requestRoute } from './routes.ts'
import { ASK_HEADER, ServerTiming } from './server-timing.ts'
import type { RequestView } from './wire.ts'

const RememberRequests = defineCommand<readonly RequestView[], void>('debug.remember')
const FindRequests = defineCommand<string, readonly RequestView[]>('debug.find')

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
