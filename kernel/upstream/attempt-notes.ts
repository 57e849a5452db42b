/** Times and status of one attempt; recorded only for routes with an onAttempt hook. */
import type { Attempt } from '../balance/worker-balance.ts'
import type { AttemptReport, WorkerErrorText } from '../contracts/hook.ts'
import type { UpstreamFailureKind } from '../contracts/transport.ts'

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
