/**
 * Who watches the traffic of a thread, such as metrics: one plugin provides the token, and is told of each event where it
 * happens. All of it is on the hot path and must not throw.
 */
import type { CandidateReport } from './hook.ts'
import type { RequestContext, TokenCounts } from './request.ts'
import { token } from './token.ts'
import type { UpstreamFailure } from './transport.ts'
import type { WorkerEntry, WorkerType } from './worker.ts'

/** Hears of the requests of one route; found once, when the route is compiled. */
export interface RouteWatch {
  /** A request arrived. Each is followed by exactly one `onDone`. */
  onRequest(): void
  /**
   * The reply is whole or given up.
   *
   * @param status as sent; 0 when the client left before any was
   * @param errorCode code of the error reply; null when it was none
   * @param durationSeconds from arrival to the last byte of the reply
   */
  onDone(status: number, errorCode: string | null, durationSeconds: number): void
}

/** Hears how one call goes on. */
export interface CallWatch {
  /** The worker's status line and headers have arrived. */
  answered(status: number): void
  /** @param worker at which the attempt failed */
  failed(worker: WorkerEntry, failure: UpstreamFailure, status: number): void
  /** What the answer has cost, before `done`; not told of answers that nobody here reads. */
  used(tokens: TokenCounts): void
  /** @param status of the reply to the client; 0 when the client left first */
  done(ctx: RequestContext, status: number): void
}

/** Hears what this thread's breakers record and change. */
export interface BreakerWatch {
  /** Those that are registered now. */
  onWorkers(workers: readonly WorkerEntry[]): void
  onOutcome(worker: WorkerEntry, isSuccess: boolean): void
  onTransition(worker: WorkerEntry, from: CandidateReport['breaker'], to: CandidateReport['breaker']): void
}

/** The API server of a thread, for who wants to look at it. */
export interface ServerView {
  /** Arrival of each open request, as `performance.now()` has it, in any order. */
  openRequestTimesMs(): Iterable<number>
  /** Null where no route is a socket. */
  readonly openSockets: (() => number) | null
}

export interface TrafficWatch {
  /** @param path the route's template, never the path as received; null for requests that match no route */
  route(method: string, path: string | null): RouteWatch
  /** The API server is there; never on threads that serve no requests. */
  serving(server: ServerView): void
  readonly breakers: BreakerWatch
  /** A worker was chosen. @param model as it is counted @param policy wire name, or `hook` */
  selected(worker: WorkerEntry, model: string, policy: string): void
  /**
   * A call has its first worker.
   *
   * @param endpoint short label of the route, such as `chat`
   * @param startedAtMs `performance.now()` at the start of routing
   */
  call(
    worker: WorkerEntry,
    model: string,
    endpoint: string,
    streaming: boolean,
    startedAtMs: number,
  ): CallWatch
  /** A call ended before any worker was chosen. */
  unrouted(error: unknown, model: string, endpoint: string, streaming: boolean): void
  /** Another attempt begins. @param attempt its number; 2 is the first that is told here */
  retried(workerType: WorkerType, endpoint: string, attempt: number, waitedMs: number): void
  /** An attempt failed in a way that another might have mended, and none is left. */
  exhausted(workerType: WorkerType, endpoint: string): void
}

export const TrafficWatch = token<TrafficWatch>('traffic-watch')
