/** The health routes, which are public, and the probe port. */
import { apiErrorFormat, type Host, type RequestContext, type RouteDefinition, workerControls } from '#kernel'
import type { HealthConfig } from './config.ts'
import { EngineMetricsPage } from './engine-metrics.ts'
import { GENERATE_PATH, GeneratingProbe } from './generating-probe.ts'
import { NotReadyResponse, openReadiness, ReadyResponse } from './readiness.ts'

const TAG = 'Health'
const PLAIN_TEXT = 'text/plain; charset=utf-8'

/** Returns 200 also without workers and while draining. */
export function livenessRoute(path: '/health' | '/liveness'): RouteDefinition {
  return {
    method: 'GET',
    path,
    access: 'public',
    errors: apiErrorFormat,
    isProbe: true,
    handler: (ctx) => ctx.text(200, 'OK'),
    docs: {
      summary: 'Liveness of the process',
      tag: TAG,
      responses: { 200: { description: 'Always.', contentType: 'text/plain' } },
    },
  }
}

export function readinessRoute(host: Host): RouteDefinition {
  const read = openReadiness(host)
  return {
    method: 'GET',
    path: '/readiness',
    access: 'public',
    errors: apiErrorFormat,
    isProbe: true,
    handler(ctx) {
      const readiness = read()
      ctx.json(readiness.status === 'ready' ? 200 : 503, readiness)
    },
    docs: {
      summary: 'Readiness to serve requests',
      tag: TAG,
      responses: {
        200: { description: 'At least one worker is ready.', schema: ReadyResponse },
        503: { description: 'Not ready, with the reason.', schema: NotReadyResponse },
      },
    },
  }
}

/** Served by the first ready worker, independent of the routing policy. */
export function healthGenerateRoute(host: Host, config: HealthConfig): RouteDefinition {
  const probe = new GeneratingProbe(host, config.generateReuseMs)
  return {
    method: 'GET',
    path: GENERATE_PATH,
    access: 'public',
    errors: apiErrorFormat,
    async handler(ctx) {
      const response = await probe.read()
      ctx.send(response.status, null, response.body, host.upstream.clientHeaders(response.headers))
    },
    docs: {
      summary: 'Generate a token on the first ready worker',
      tag: TAG,
      responses: {
        200: {
          description:
            'The response of the worker, with its status and headers; shared by requests within generateReuseMs.',
        },
        502: { description: 'The worker is unreachable.' },
        503: { description: 'No ready worker supports it.' },
        504: { description: 'The worker timed out.' },
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
        200: { description: 'Every sample has the label `worker_addr`.', contentType: 'text/plain' },
        503: { description: 'No worker returned valid metrics.' },
      },
    },
  }
}

export async function openProbe(host: Host, at: NonNullable<HealthConfig['probe']>): Promise<void> {
  const { port } = await host.listen({
    ...at,
    portSetting: 'plugins.health.probe.port',
    routes: [livenessRoute('/health'), livenessRoute('/liveness'), readinessRoute(host)],
  })
  host.log.info({ host: at.host, port }, 'probe port listening')
}
