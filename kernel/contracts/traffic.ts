/**
 * Observers of a thread's traffic, such as metrics: one plugin provides the token. All methods are on the hot path and must
 * not throw.
 */
import type { CandidateReport } from './hook.ts'
import type { RequestContext, TokenUsage } from './request.ts'
import { token } from './token.ts'
import type { UpstreamFailure } from './transport.ts'
import type { WorkerEntry, WorkerType } from './worker.ts'

/** Observes the requests of one route; created when the route is compiled. */
export interface RouteWatch {
  /** A request arrived. Each is followed by exactly one `onDone`. */
  onRequest(): void
  /**
   * The request has ended.
   *
   * @param status as sent; 0 if the client disconnected before
   * @param errorCode code of an error response; null otherwise
   * @param durationSeconds from arrival to the last byte of the response
   */
  onDone(status: number, errorCode: string | null, durationSeconds: number): void
}

/** Observes one call. */
export interface CallWatch {
  /** The worker's status line and headers have arrived. */
  answered(status: number): void
  /** @param worker at which the attempt failed */
  failed(worker: WorkerEntry, failure: UpstreamFailure, status: number): void
  /** Token usage of a response of the worker; not called if it reports none. After `done` for a response that broke off. */
  used(ctx: RequestContext, worker: WorkerEntry, usage: TokenUsage): void
  /** @param status of the client's response; 0 if the client disconnected before */
  done(ctx: RequestContext, status: number): void
}

/** Observes the breakers of this thread. */
export interface BreakerWatch {
  /** The registered workers have changed. */
  onWorkers(workers: readonly WorkerEntry[]): void
  onOutcome(worker: WorkerEntry, isSuccess: boolean): void
  onTransition(worker: WorkerEntry, from: CandidateReport['breaker'], to: CandidateReport['breaker']): void
}

/** State of a thread's API server. */
export interface ServerView {
  /** Arrival times of open requests (`performance.now()`), in any order. */
  openRequestTimesMs(): Iterable<number>
  /** Null without a socket route. */
  readonly openSockets: (() => number) | null
}

export interface TrafficWatch {
  /** @param path the route's template, never the path as received; null for requests that match no route */
  route(method: string, path: string | null): RouteWatch
  /** Called on data threads when the API server exists. */
  serving(server: ServerView): void
  readonly breakers: BreakerWatch
  /** A worker was picked. @param policy name, or `hook` */
  selected(worker: WorkerEntry, model: string, policy: string): void
  /**
   * A call has its first worker.
   *
   * @param endpoint short label of the route, such as `chat`
   * @param startedAtMs `performance.now()` at the start of routing
   * @param overheadMs from the arrival of the request to its first attempt, milliseconds; null for its further calls
   */
  call(
    worker: WorkerEntry,
    model: string,
    endpoint: string,
    streaming: boolean,
    startedAtMs: number,
    overheadMs: number | null,
  ): CallWatch
  /** A call ended before a worker was picked. */
  unrouted(error: unknown, model: string, endpoint: string, streaming: boolean): void
  /** Another attempt starts. @param attempt its number, 2 or more */
  retried(workerType: WorkerType, endpoint: string, attempt: number, waitedMs: number): void
  /** A retryable attempt failed and no attempt is left. */
  exhausted(workerType: WorkerType, endpoint: string): void
}

export const TrafficWatch = token<TrafficWatch>('traffic-watch')
