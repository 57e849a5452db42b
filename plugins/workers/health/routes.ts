/** The health routes: what comes in and goes out. All are public. */
import { apiErrorFormat, type Host, type RequestContext, type RouteDefinition, workerControls } from '#kernel'
import type { HealthConfig } from './config.ts'
import { EngineMetricsPage } from './engine-metrics-page.ts'
import { healthErrors } from './errors.ts'
import { readReadiness } from './readiness.ts'
import { NotReadyReply, ReadyReply } from './wire.ts'

const TAG = 'Health'
const PLAIN_TEXT = 'text/plain; charset=utf-8'

/** Answers whether or not workers exist, and while draining. */
export function aliveRoute(path: '/health' | '/liveness'): RouteDefinition {
  return {
    method: 'GET',
    path,
    access: 'public',
    errors: apiErrorFormat,
    isProbe: true,
    handler: (ctx) => ctx.text(200, 'OK'),
    docs: {
      summary: 'Is the process alive',
      tag: TAG,
      responses: { 200: { description: 'Always.', contentType: 'text/plain' } },
    },
  }
}

export function readinessRoute(host: Host): RouteDefinition {
  return {
    method: 'GET',
    path: '/readiness',
    access: 'public',
    errors: apiErrorFormat,
    isProbe: true,
    handler(ctx) {
      const readiness = readReadiness(host)
      ctx.json(readiness.status === 'ready' ? 200 : 503, readiness)
    },
    docs: {
      summary: 'Can the gateway serve requests',
      tag: TAG,
      responses: {
        200: { description: 'At least one worker is ready.', schema: ReadyReply },
        503: { description: 'Not ready, with the reason.', schema: NotReadyReply },
      },
    },
  }
}

/** The first ready worker answers, whatever the balancing policy would pick. */
export function healthGenerateRoute(host: Host): RouteDefinition {
  return {
    method: 'GET',
    path: '/health_generate',
    access: 'public',
    errors: apiErrorFormat,
    handler(ctx) {
      const worker = host.balance.firstReady(({ apis }) => apis.includes('generate'))
      if (worker === undefined) throw healthErrors.no_workers()
      host.upstream.relay(ctx, {
        method: 'GET',
        path: '/health_generate',
        model: null,
        stream: false,
        worker,
      })
    },
    docs: {
      summary: 'Let the first ready worker generate a token',
      tag: TAG,
      responses: {
        200: { description: "The worker's own answer; its status and headers pass through." },
        502: { description: 'The worker could not be reached.' },
        503: { description: 'No worker that can do it is ready.' },
        504: { description: 'The worker took too long.' },
      },
    },
  }
}

export function engineMetricsRoute(host: Host, config: HealthConfig): RouteDefinition {
  const page = new EngineMetricsPage({
    timeoutMs: config.scrapeMs,
    maxConcurrent: config.maxConcurrentScrapes,
  })
  return {
    method: 'GET',
    path: '/engine_metrics',
    access: 'public',
    errors: apiErrorFormat,
    async handler(ctx: RequestContext) {
      const text = await page.read(workerControls(host.upstream), host.balance.workers)
      ctx.send(200, PLAIN_TEXT, text)
    },
    docs: {
      summary: 'Metrics of all workers in one Prometheus text',
      tag: TAG,
      responses: {
        200: { description: 'Every sample carries the label `worker_addr`.', contentType: 'text/plain' },
        503: { description: 'No worker gave readable metrics.' },
      },
    },
  }
}
