/** The tracing plugin: OpenTelemetry spans of requests and upstream attempts, with W3C trace context. */
import { definePlugin, RequestTracing, type RouteDefinition } from '#kernel'
import { tracingConfig } from './config.ts'
import { RequestSpans } from './request-spans.ts'
import type { SpanPipeline } from './span-pipeline.ts'

const VERSION = '0.1.0'

export default definePlugin({
  manifest: {
    name: 'tracing',
    version: VERSION,
    description: 'OpenTelemetry traces of requests, exported by OTLP over HTTP.',
    provides: [RequestTracing],
    config: tracingConfig,
  },
  register(host, config) {
    if (!host.isData) return
    host.upstream.countUsage()
    let pipeline: SpanPipeline | null = null
    const spans = new RequestSpans(host, () => pipeline)
    host.provide(RequestTracing, spans)
    const inference = { scope: 'all', routes: (route: RouteDefinition) => route.access === 'api' } as const
    host.hook('onRequest', (ctx) => spans.open(ctx), { ...inference, order: 'early' })
    host.hook('onUpstreamRequest', (ctx, attempt) => spans.beginAttempt(ctx, attempt), {
      ...inference,
      order: 'late',
    })
    host.hook('onAttempt', (ctx, report) => spans.endAttempt(ctx, report), inference)
    host.hook('onDone', (ctx) => spans.close(ctx), { ...inference, order: 'late' })
    return {
      // Loaded lazily, because the SDK is large.
      start: async () => {
        const { SpanPipeline } = await import('./span-pipeline.ts')
        pipeline = new SpanPipeline(config, VERSION, host)
      },
      stop: async () => {
        const last = pipeline
        pipeline = null
        await last
          ?.close()
          .catch((err: unknown) => host.log.warn({ err }, 'last spans could not be exported'))
      },
    }
  },
})
