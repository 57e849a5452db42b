/** Counts one call: selection, the worker's answer, time to first byte, the end. @hot */
import type { Metrics } from '../contracts/metric.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { UpstreamFailure } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { type LabelLimit, OTHER } from '../observe/label-limit.ts'
import { RetryMetrics } from '../observe/retry-metrics.ts'
import {
  type RoutedMetrics,
  type RouterKind,
  RouterMetrics,
  routerErrorType,
  routerKinds,
} from '../observe/router-metrics.ts'
import type { WorkerMetrics } from '../observe/worker-metrics.ts'

/** Why nobody was chosen, as `balance-errors.ts` has it. Anything else is a hook or a policy that failed. */
const NO_WORKERS_CODES: ReadonlySet<string> = new Set([
  'no_workers',
  'model_not_found',
  'no_available_workers',
  'no_suitable_worker',
  'server_selection_failed',
])

/** Labels of calls for which no worker was found: those of the built-in transport. */
const UNROUTED = routerKinds('http')

export class CallMeters {
  readonly router: RouterMetrics
  readonly workers: WorkerMetrics
  readonly retries: RetryMetrics

  constructor(metrics: Metrics, models: LabelLimit, workers: WorkerMetrics) {
    this.router = new RouterMetrics(metrics, models)
    this.workers = workers
    this.retries = new RetryMetrics(metrics)
  }

  /**
   * @param endpoint short label of the route, such as `chat`
   * @param startedAtMs `performance.now()` at the start of routing
   */
  start(
    worker: WorkerEntry,
    model: string,
    endpoint: string,
    streaming: boolean,
    startedAtMs: number,
  ): CallMeter {
    const kind = kindOf(worker)
    const routed = this.router.forRequest(kind, model, endpoint, streaming)
    return new CallMeter(this, kind, routed, startedAtMs)
  }

  /** A request ended before any worker was chosen. Names of models that nobody serves are the client's invention. */
  unrouted(error: unknown, model: string, endpoint: string, streaming: boolean): void {
    const code = error instanceof GatewayError ? error.code : ''
    const kind = code === 'server_selection_failed' ? UNROUTED.pair : UNROUTED.regular
    const isKnown = code !== 'model_not_found' && code !== 'no_workers'
    const routed = this.router.forRequest(kind, isKnown ? model : OTHER, endpoint, streaming)
    routed.onRefused(NO_WORKERS_CODES.has(code) ? 'no_workers' : 'internal_error')
  }
}

/** Of a pair, the decode worker stands for both. */
function kindOf(worker: WorkerEntry): RouterKind {
  const kinds = routerKinds(worker.connectionMode)
  if (worker.workerType === 'decode') return kinds.pair
  return worker.isExternal ? kinds.external : kinds.regular
}

export class CallMeter {
  readonly #meters: CallMeters
  readonly #kind: RouterKind
  readonly #routed: RoutedMetrics
  readonly #startedAtMs: number

  constructor(meters: CallMeters, kind: RouterKind, routed: RoutedMetrics, startedAtMs: number) {
    this.#meters = meters
    this.#kind = kind
    this.#routed = routed
    this.#startedAtMs = startedAtMs
    routed.onRequest()
  }

  /** The worker's status line and headers have arrived. */
  answered(status: number): void {
    this.#meters.router.onUpstreamResponse(this.#kind, status, null)
  }

  /** @param worker at which the attempt failed */
  failed(worker: WorkerEntry, failure: UpstreamFailure, status: number): void {
    this.#meters.router.onUpstreamResponse(this.#kind, status, failure.kind)
    this.#meters.workers.onError(worker.workerType, worker.connectionMode, failure.kind)
  }

  /** @param status of the reply to the client; 0 when the client left first */
  done(ctx: RelayContext, status: number): void {
    const nowMs = performance.now()
    const firstByteAtMs = ctx.firstByteAtMs === 0 ? nowMs : ctx.firstByteAtMs
    if (status !== 0 && status < 400) {
      this.#routed.onFirstToken((firstByteAtMs - ctx.startedAtMs) / 1000)
      this.#routed.onGenerated((nowMs - firstByteAtMs) / 1000)
    }
    this.#routed.onDone((nowMs - this.#startedAtMs) / 1000, status >= 400 ? routerErrorType(status) : null)
  }
}
