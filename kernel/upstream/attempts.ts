/** The attempts of one call: at a worker or at a pair, and their reports for onAttempt hooks. */
import type { Attempt, Choice, Fault, PickOptions, WorkerBalance } from '../balance/worker-balance.ts'
import type { AttemptReport, WorkerErrorText } from '../contracts/hook.ts'
import type { Logger } from '../contracts/log.ts'
import type { PairLeg } from '../contracts/pair.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { UpstreamFailureKind } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'

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

/**
 * A prefill and a decode worker, which are picked and counted together. As an `Attempt` it is the decode worker's, whose
 * response the client gets.
 */
export class PairAttempt implements Attempt {
  readonly prefill: Attempt
  readonly decode: Attempt
  /** Notes of the prefill leg; null without an onAttempt hook. */
  prefillNotes: AttemptNotes | null = null

  constructor(prefill: Attempt, decode: Attempt) {
    this.prefill = prefill
    this.decode = decode
  }

  /**
   * Picks prefill first, then decode, each by the policy of its leg.
   *
   * @throws as `WorkerBalance.pick`; then neither is counted
   */
  static pick(
    balance: WorkerBalance,
    ctx: RelayContext,
    model: string,
    options: PickOptions | undefined,
  ): PairAttempt {
    const prefill = balance.pick(ctx, model, { ...options, leg: 'prefill' })
    try {
      return new PairAttempt(prefill, balance.pick(ctx, model, { ...options, leg: 'decode' }))
    } catch (error) {
      prefill.release()
      throw error
    }
  }

  get worker(): WorkerEntry {
    return this.decode.worker
  }

  get policy(): string {
    return this.decode.policy
  }

  get choice(): Choice | null {
    return this.decode.choice
  }

  leg(leg: PairLeg): Attempt {
    return leg === 'prefill' ? this.prefill : this.decode
  }

  firstByte(): void {
    this.decode.firstByte()
  }

  /** Of the decode worker; the prefill worker's result is reported when its own response has ended. */
  succeeded(): void {
    this.decode.succeeded()
  }

  refused(): void {
    this.decode.refused()
  }

  failed(fault?: Fault): void {
    this.decode.failed(fault)
  }

  /** Both stay counted until the response has ended. */
  release(): void {
    this.prefill.release()
    this.decode.release()
  }
}

/** @returns the notes of the worker whose response is passed on; those of a prefill worker are in the attempt */
export function openNotes(attempt: Attempt): AttemptNotes {
  if (attempt instanceof PairAttempt) attempt.prefillNotes = new AttemptNotes()
  return new AttemptNotes()
}

/** @param number 1-based number of the attempt in its request */
export function toReports(
  attempt: Attempt,
  notes: AttemptNotes,
  number: number,
  outcome: AttemptReport['outcome'],
): AttemptReport[] {
  const own = notes.toReport(attempt, number, outcome)
  if (!(attempt instanceof PairAttempt) || attempt.prefillNotes === null) return [own]
  return [attempt.prefillNotes.toReport(attempt.prefill, number, outcome), own]
}

/** Exceptions of hooks are logged and do not fail the request. */
export function reportAttempts(ctx: RelayContext, reports: readonly AttemptReport[], log: Logger): void {
  try {
    for (const report of reports) ctx.hooks.onAttempt?.(ctx, report)
  } catch (error) {
    log.error({ err: error, request_id: ctx.requestId }, 'onAttempt hook failed')
  }
}
