/** @hot Implements TrafficWatch: passes each event of the thread's traffic to its metrics. */
import {
  type CallWatch,
  type CounterHandle,
  GatewayError,
  type HistogramHandle,
  type MetricFamily,
  type Metrics,
  type RequestContext,
  type RouteWatch,
  type ServerView,
  type TokenUsage,
  type TrafficWatch,
  tenantOf,
  turnNowMs,
  type UpstreamFailure,
  type WorkerBalance,
  type WorkerEntry,
  type WorkerType,
} from '#kernel'
import { modelLabelLimit, OTHER } from '#shared'
import { HttpMetrics } from './http-metrics.ts'
import {
  type RoutedMetrics,
  type RouterKind,
  RouterMetrics,
  routerErrorType,
  routerKinds,
  UsageMetrics,
} from './router-metrics.ts'
import { BreakerMetrics, WorkerMetrics } from './worker-metrics.ts'

/** Error codes of requests without an available worker; other codes are failures of hooks or policies. */
const NO_WORKERS_CODES: ReadonlySet<string> = new Set([
  'no_workers',
  'workers_pending',
  'model_not_found',
  'no_available_workers',
  'no_suitable_worker',
  'server_selection_failed',
  'worker_overload_protection_shed',
])

/** Of those, the codes of requests whose model no worker lists. */
const UNKNOWN_MODEL_CODES: ReadonlySet<string> = new Set(['no_workers', 'workers_pending', 'model_not_found'])

/** Highest attempt number with its own label; later attempts are labelled `more`. */
const MAX_ATTEMPT_LABEL = 20

/** Labels of requests without a worker. */
const UNROUTED = routerKinds('http')

export class TrafficMetrics implements TrafficWatch {
  readonly breakers: BreakerMetrics
  readonly #metrics: Metrics
  readonly #calls: CallMetrics
  readonly #retries: MetricFamily<CounterHandle>
  readonly #exhausted: MetricFamily<CounterHandle>
  readonly #backOff: MetricFamily<HistogramHandle>
  /** Set on threads that serve requests. */
  #http: HttpMetrics | null = null

  constructor(metrics: Metrics) {
    const models = modelLabelLimit()
    this.#metrics = metrics
    this.#calls = {
      router: new RouterMetrics(metrics, models),
      workers: new WorkerMetrics(metrics, models),
      usage: new UsageMetrics(metrics),
    }
    const labels = ['worker_type', 'endpoint']
    this.#retries = metrics.counter({ name: 'weir_worker_retries_total', help: 'Retries.', labels })
    this.#exhausted = metrics.counter({
      name: 'weir_worker_retries_exhausted_total',
      help: 'Requests that failed after the last retry.',
      labels,
    })
    this.#backOff = metrics.histogram({
      name: 'weir_worker_retry_backoff_seconds',
      help: 'Backoff before a retry, by attempt number.',
      labels: ['attempt'],
    })
    this.breakers = new BreakerMetrics(metrics)
  }

  /** Declares gauges of the whole gateway; call on control only, because gauges of several threads are added up. */
  watchWorkers(balance: WorkerBalance): void {
    this.breakers.watch(balance)
    this.#calls.workers.watch(balance)
  }

  route(method: string, path: string | null): RouteWatch {
    this.#http ??= new HttpMetrics(this.#metrics)
    return this.#http.forRoute(method, path)
  }

  serving({ openRequestTimesMs, openSockets }: ServerView): void {
    declareOpenRequestAges(this.#metrics, openRequestTimesMs)
    if (openSockets === null) return
    const open = this.#metrics
      .gauge({ name: 'weir_sockets_open', help: 'Open WebSocket connections.' })
      .labels()
    this.#metrics.onCollect(() => {
      open.value = openSockets()
    })
  }

  selected(worker: WorkerEntry, model: string, policy: string): void {
    this.#calls.workers.onSelection(worker, model, policy)
  }

  call(
    worker: WorkerEntry,
    model: string,
    endpoint: string,
    streaming: boolean,
    startedAtMs: number,
    overheadMs: number | null,
  ): CallWatch {
    const kind = kindOf(worker)
    const routed = this.#calls.router.forRequest(kind, model, endpoint, streaming)
    if (overheadMs !== null) routed.overhead.observe(overheadMs / 1000)
    return new CallMeter(this.#calls, kind, routed, startedAtMs)
  }

  /** Unknown models are labelled `other`, because clients choose their names. */
  unrouted(error: unknown, model: string, endpoint: string, streaming: boolean): void {
    const code = error instanceof GatewayError ? error.code : ''
    const kind = code === 'server_selection_failed' ? UNROUTED.pair : UNROUTED.regular
    const isKnown = !UNKNOWN_MODEL_CODES.has(code)
    const routed = this.#calls.router.forRequest(kind, isKnown ? model : OTHER, endpoint, streaming)
    // Not in the duration histogram, which its short duration would distort.
    routed.requests.value += 1
    routed.countError(NO_WORKERS_CODES.has(code) ? 'no_workers' : 'internal_error')
  }

  /** @param attempt number of the attempt, at least 2 */
  retried(workerType: WorkerType, endpoint: string, attempt: number, waitedMs: number): void {
    this.#retries.labels(workerType, endpoint).value += 1
    const label = attempt > MAX_ATTEMPT_LABEL ? 'more' : String(attempt)
    this.#backOff.labels(label).observe(waitedMs / 1000)
  }

  exhausted(workerType: WorkerType, endpoint: string): void {
    this.#exhausted.labels(workerType, endpoint).value += 1
  }
}

/** A pair is identified by its decode worker. */
function kindOf(worker: WorkerEntry): RouterKind {
  const kinds = routerKinds(worker.connectionMode)
  if (worker.workerType === 'decode') return kinds.pair
  return worker.isExternal ? kinds.external : kinds.regular
}

/** Upper bounds of the bands of open requests by age, in seconds. */
const AGE_BOUNDS = [30, 60, 180, 300, 600, 1_200, 3_600, 7_200, 14_400, 28_800, 86_400]

/**
 * Declares `weir_http_inflight_requests`; bands do not overlap, so they add up to all open requests.
 *
 * @param startTimesMs arrival of each open request of this thread, in time of `performance.now()`
 */
export function declareOpenRequestAges(metrics: Metrics, startTimesMs: () => Iterable<number>): void {
  const family = metrics.gauge({
    name: 'weir_http_inflight_requests',
    help: 'Open requests by age in seconds: more than age_over, at most age_up_to.',
    labels: ['age_over', 'age_up_to'],
  })
  const lower = ['0', ...AGE_BOUNDS.map(String)]
  const bands = lower.map((over, index) => family.labels(over, String(AGE_BOUNDS[index] ?? '+Inf')))
  metrics.onCollect(() => {
    const nowMs = performance.now()
    for (const band of bands) band.value = 0
    for (const startMs of startTimesMs()) {
      const ageSeconds = (nowMs - startMs) / 1000
      const index = AGE_BOUNDS.findIndex((bound) => ageSeconds <= bound)
      bands[index === -1 ? AGE_BOUNDS.length : index].value += 1
    }
  })
}

interface CallMetrics {
  readonly router: RouterMetrics
  readonly workers: WorkerMetrics
  readonly usage: UsageMetrics
}

/** Measures one upstream call: response, time to first byte, end. */
class CallMeter implements CallWatch {
  readonly #metrics: CallMetrics
  readonly #kind: RouterKind
  readonly #routed: RoutedMetrics
  readonly #startedAtMs: number
  /** Time of the response headers; 0 before. */
  #answeredAtMs = 0
  #outputTokens = 0

  constructor(metrics: CallMetrics, kind: RouterKind, routed: RoutedMetrics, startedAtMs: number) {
    this.#metrics = metrics
    this.#kind = kind
    this.#routed = routed
    this.#startedAtMs = startedAtMs
    routed.requests.value += 1
  }

  /** The worker's status line and headers have arrived. */
  answered(status: number): void {
    this.#answeredAtMs = turnNowMs()
    this.#metrics.router.onUpstreamResponse(this.#kind, status, null)
  }

  /** @param worker at which the attempt failed */
  failed(worker: WorkerEntry, failure: UpstreamFailure, status: number): void {
    this.#metrics.router.onUpstreamResponse(this.#kind, status, failure.kind)
    this.#metrics.workers.onError(worker.workerType, worker.connectionMode, failure.kind)
  }

  used(ctx: RequestContext, worker: WorkerEntry, usage: TokenUsage): void {
    this.#outputTokens += usage.output
    this.#routed.tokens.add(usage)
    this.#metrics.usage.onUsage(tenantOf(ctx), worker.url, usage)
  }

  /** @param status of the response to the client; 0 if the client disconnected first */
  done(ctx: RequestContext, status: number): void {
    const routed = this.#routed
    const nowMs = turnNowMs()
    const firstByteAtMs = ctx.firstByteAtMs === 0 ? nowMs : ctx.firstByteAtMs
    if (status !== 0 && status < 400) {
      routed.firstToken.observe((firstByteAtMs - ctx.startedAtMs) / 1000)
      routed.generation?.observe((nowMs - firstByteAtMs) / 1000)
      // A request may have several calls; this one is measured from its own start.
      const beganAtMs = Math.max(ctx.firstByteAtMs, this.#answeredAtMs)
      if (this.#outputTokens > 1) routed.pace?.observe((nowMs - beganAtMs) / 1000 / (this.#outputTokens - 1))
    }
    routed.duration.observe((nowMs - this.#startedAtMs) / 1000)
    if (status >= 400) routed.countError(routerErrorType(status))
  }
}
