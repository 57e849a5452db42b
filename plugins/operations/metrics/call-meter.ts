/** Measures one upstream call: response, time to first byte, end. @hot */
import {
  type CallWatch,
  type RequestContext,
  type TokenUsage,
  tenantOf,
  turnNowMs,
  type UpstreamFailure,
  type WorkerEntry,
} from '#kernel'
import { type RoutedMetrics, type RouterKind, type RouterMetrics, routerErrorType } from './router-metrics.ts'
import type { UsageMetrics } from './usage-metrics.ts'
import type { WorkerMetrics } from './worker-metrics.ts'

export interface CallMetrics {
  readonly router: RouterMetrics
  readonly workers: WorkerMetrics
  readonly usage: UsageMetrics
}

export class CallMeter implements CallWatch {
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
