/** Counts one routed request: selection, the worker's answer, time to first byte, the end. @hot */
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { UpstreamFailure } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import {
  HTTP_EXTERNAL,
  HTTP_REGULAR,
  type RoutedMetrics,
  type RouterKind,
  type RouterMetrics,
  routerErrorType,
} from '../observe/router-metrics.ts'
import type { WorkerMetrics } from '../observe/worker-metrics.ts'

export class RelayMeters {
  readonly router: RouterMetrics
  readonly workers: WorkerMetrics

  constructor(router: RouterMetrics, workers: WorkerMetrics) {
    this.router = router
    this.workers = workers
  }

  /** @param endpoint short label of the route, such as `chat` */
  start(worker: WorkerEntry, model: string, endpoint: string, streaming: boolean): RelayMeter {
    const kind = worker.runtimeType === 'external' ? HTTP_EXTERNAL : HTTP_REGULAR
    return new RelayMeter(this, worker, kind, this.router.forRequest(kind, model, endpoint, streaming))
  }
}

export class RelayMeter {
  readonly #meters: RelayMeters
  readonly #worker: WorkerEntry
  readonly #kind: RouterKind
  readonly #routed: RoutedMetrics
  readonly #startedAtMs = performance.now()

  constructor(meters: RelayMeters, worker: WorkerEntry, kind: RouterKind, routed: RoutedMetrics) {
    this.#meters = meters
    this.#worker = worker
    this.#kind = kind
    this.#routed = routed
    routed.onRequest()
  }

  /** The worker's status line and headers have arrived. */
  answered(status: number): void {
    this.#meters.router.onUpstreamResponse(this.#kind, status, null)
  }

  failed(failure: UpstreamFailure, status: number): void {
    this.#meters.router.onUpstreamResponse(this.#kind, status, failure.kind)
    this.#meters.workers.onError(this.#worker.workerType, this.#worker.connectionMode, failure.kind)
  }

  /** @param status of the reply to the client; 0 when the client left first */
  done(ctx: RelayContext, status: number): void {
    const nowMs = performance.now()
    const firstByteAtMs = ctx.firstByteAtMs === 0 ? nowMs : ctx.firstByteAtMs
    if (status !== 0 && status < 400) this.#routed.onFirstToken((firstByteAtMs - ctx.startedAtMs) / 1000)
    this.#routed.onDone((nowMs - this.#startedAtMs) / 1000, status >= 400 ? routerErrorType(status) : null)
  }
}
