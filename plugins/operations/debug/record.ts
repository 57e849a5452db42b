/** Notes what happens to each request on this thread and makes the record of it when it is over. */
import type { AttemptReport, Host, RequestContext, RequestSlot } from '#kernel'
import { tenantOf } from '#shared'
import type { AttemptView, RequestView } from './wire.ts'

/** Candidates of one attempt that are kept: records of a large fleet must not fill the memory of control. */
const MAX_CANDIDATES = 16
/** Longer paths and names are cut: a client must not fill the memory of control. Characters. */
const MAX_PATH_LENGTH = 500
const MAX_NAME_LENGTH = 256

/** What of a request id is remembered, and looked for. */
export function toKnownId(requestId: string): string {
  return requestId.slice(0, MAX_NAME_LENGTH)
}

export class RequestRecorder {
  readonly #attempts: RequestSlot<AttemptReport[]>
  readonly #thread: number

  constructor(host: Host) {
    this.#attempts = host.slot()
    this.#thread = host.threadIndex
  }

  noteAttempt(ctx: RequestContext, report: AttemptReport): void {
    const known = this.#attempts.get(ctx)
    if (known === undefined) this.#attempts.set(ctx, [report])
    else known.push(report)
  }

  /** In `onDone`. */
  toView(ctx: RequestContext): RequestView {
    const nowMs = performance.now()
    return {
      request_id: toKnownId(ctx.requestId),
      method: ctx.method,
      path: ctx.path.slice(0, MAX_PATH_LENGTH),
      route: ctx.route.path,
      tenant: tenantOf(ctx),
      model: modelOf(ctx),
      status: ctx.status,
      error_code: ctx.errorCode,
      is_aborted: ctx.isAborted,
      started_at: new Date(performance.timeOrigin + ctx.startedAtMs).toISOString(),
      first_byte_ms: ctx.firstByteAtMs === 0 ? null : round(ctx.firstByteAtMs - ctx.startedAtMs),
      duration_ms: round(nowMs - ctx.startedAtMs),
      bytes_out: ctx.bytesOut,
      modules: [...(ctx.modules ?? [])],
      thread: this.#thread,
      attempts: (this.#attempts.get(ctx) ?? []).map((attempt) => attemptView(attempt, ctx.startedAtMs)),
    }
  }
}

function attemptView(attempt: AttemptReport, arrivedAtMs: number): AttemptView {
  return {
    number: attempt.number,
    worker_id: attempt.worker.id,
    worker_url: attempt.worker.url,
    policy: attempt.policy,
    explanation: attempt.explanation,
    candidates:
      attempt.candidates?.slice(0, MAX_CANDIDATES).map((candidate) => ({
        worker_id: candidate.workerId,
        url: candidate.url,
        in_flight: candidate.inFlight,
        breaker: candidate.breaker,
        is_available: candidate.isAvailable,
      })) ?? null,
    start_ms: round(attempt.startedAtMs - arrivedAtMs),
    first_byte_ms: attempt.answeredAtMs === 0 ? null : round(attempt.answeredAtMs - attempt.startedAtMs),
    duration_ms: round(attempt.endedAtMs - attempt.startedAtMs),
    status: attempt.status === 0 ? null : attempt.status,
    failure: attempt.failure,
    outcome: attempt.outcome,
  }
}

/** Found while the request was served; a body that was never looked at is not looked at now. */
function modelOf(ctx: RequestContext): string | null {
  try {
    return ctx.peek().model?.slice(0, MAX_NAME_LENGTH) ?? null
  } catch {
    return null
  }
}

/** Microseconds are enough. */
function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}
