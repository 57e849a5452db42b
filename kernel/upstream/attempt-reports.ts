/** Reports attempts to onAttempt hooks: one report per worker of the attempt. */
import type { Attempt } from '../balance/worker-balance.ts'
import type { AttemptReport } from '../contracts/hook.ts'
import type { Logger } from '../contracts/log.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import { AttemptNotes } from './attempt-notes.ts'
import { PairAttempt } from './pair-attempt.ts'

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
