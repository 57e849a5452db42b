/** Records the events of each request on this thread and builds its debug record. */
import type {
  AttemptReport,
  Host,
  RequestContext,
  RequestSlot,
  RequestStep,
  RequestStepsService,
} from '#kernel'
import { tenantOf } from '#kernel'
import type { AttemptView, RequestView, StepView } from './wire.ts'

/** Maximum recorded candidates per attempt, which bounds memory on control. */
const MAX_CANDIDATES = 16
/** Maximum recorded steps per request. */
const MAX_STEPS = 64
/** Maximum characters of recorded paths and names; longer ones are truncated. */
const MAX_PATH_LENGTH = 500
const MAX_NAME_LENGTH = 256

/** The part of a request id that is recorded and compared. */
export function toKnownId(requestId: string): string {
  return requestId.slice(0, MAX_NAME_LENGTH)
}

/** Its times are those of the first call, with the duration of all. */
type RecordedStep = { -readonly [Member in keyof RequestStep]: RequestStep[Member] } & { calls: number }

export class RequestRecorder implements RequestStepsService {
  readonly #attempts: RequestSlot<AttemptReport[]>
  readonly #steps: RequestSlot<RecordedStep[]>
  readonly #thread: number

  constructor(host: Host) {
    this.#attempts = host.slot()
    this.#steps = host.slot()
    this.#thread = host.threadIndex
  }

  noteAttempt(ctx: RequestContext, report: AttemptReport): void {
    const known = this.#attempts.get(ctx)
    if (known === undefined) this.#attempts.set(ctx, [report])
    else known.push(report)
  }

  note(ctx: RequestContext, step: RequestStep): void {
    const known = this.#steps.get(ctx)
    const recorded = { ...step, calls: 1 }
    if (known === undefined) this.#steps.set(ctx, [recorded])
    else if (known.length < MAX_STEPS) known.push(recorded)
  }

  add(ctx: RequestContext, step: RequestStep): void {
    const known = this.#steps.get(ctx)?.find(({ kind, name }) => kind === step.kind && name === step.name)
    if (known === undefined) {
      this.note(ctx, step)
      return
    }
    known.calls++
    known.endedAtMs += step.endedAtMs - step.startedAtMs
    known.error ??= step.error
  }

  /** Call in `onDone`. */
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
      steps: (this.#steps.get(ctx) ?? []).map((step) => stepView(step, ctx.startedAtMs)),
      attempts: (this.#attempts.get(ctx) ?? []).map((attempt) => attemptView(attempt, ctx.startedAtMs)),
    }
  }
}

function stepView(step: RecordedStep, arrivedAtMs: number): StepView {
  const { kind, name, startedAtMs, endedAtMs, error, calls } = step
  return {
    kind,
    name: name.slice(0, MAX_NAME_LENGTH),
    start_ms: round(startedAtMs - arrivedAtMs),
    duration_ms: round(endedAtMs - startedAtMs),
    calls,
    error: error?.slice(0, MAX_NAME_LENGTH) ?? null,
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
        load_score: round(candidate.loadScore),
        breaker: candidate.breaker,
        is_available: candidate.isAvailable,
        is_suspect: candidate.isSuspect,
      })) ?? null,
    start_ms: round(attempt.startedAtMs - arrivedAtMs),
    first_byte_ms: attempt.answeredAtMs === 0 ? null : round(attempt.answeredAtMs - attempt.startedAtMs),
    duration_ms: round(attempt.endedAtMs - attempt.startedAtMs),
    status: attempt.status === 0 ? null : attempt.status,
    failure: attempt.failure,
    error: attempt.error?.text ?? null,
    outcome: attempt.outcome,
  }
}

/** The model if the body was inspected while the request was served, else null. */
function modelOf(ctx: RequestContext): string | null {
  try {
    return ctx.peek().model?.slice(0, MAX_NAME_LENGTH) ?? null
  } catch {
    return null
  }
}

/** Rounds to microseconds. */
function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}
