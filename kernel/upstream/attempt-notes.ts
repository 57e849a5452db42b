/** What is noted about an attempt, and its report for onAttempt hooks. */
import type { Attempt } from '../balance/worker-balance.ts'
import type { AttemptReport, WorkerErrorText } from '../contracts/hook.ts'
import type { Logger } from '../contracts/log.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { UpstreamFailureKind } from '../contracts/transport.ts'

/** Times and status of an attempt at one worker; recorded only for routes with an onAttempt hook. */
export class AttemptNotes {
  /** `performance.now()`, as all times here; 0 if it has not happened. */
  readonly startedAtMs = performance.now()
  answeredAtMs = 0
  endedAtMs = 0
  status = 0
  failure: UpstreamFailureKind | null = null
  error: WorkerErrorText | null = null

  answered(status: number): void {
    this.status = status
    this.answeredAtMs = performance.now()
  }

  ended(): void {
    if (this.endedAtMs === 0) this.endedAtMs = performance.now()
  }

  /** @param number 1-based number of the attempt in its request */
  toReport(attempt: Attempt, number: number, outcome: AttemptReport['outcome']): AttemptReport {
    this.ended()
    return {
      worker: attempt.worker,
      number,
      policy: attempt.policy,
      explanation: attempt.choice?.explanation ?? null,
      candidates: attempt.choice?.candidates ?? null,
      startedAtMs: this.startedAtMs,
      answeredAtMs: this.answeredAtMs,
      endedAtMs: this.endedAtMs,
      status: this.status,
      failure: this.failure,
      error: this.error,
      outcome,
    }
  }
}

/** Exceptions of hooks are logged and do not fail the request. */
export function reportAttempt(ctx: RelayContext, report: AttemptReport, log: Logger): void {
  try {
    ctx.hooks.onAttempt?.(ctx, report)
  } catch (error) {
    log.error({ err: error, request_id: ctx.requestId }, 'onAttempt hook failed')
  }
}
