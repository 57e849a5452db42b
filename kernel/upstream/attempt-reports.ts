/** Tells plugins how attempts went, where one hooked onAttempt: one report for each worker that took part. */
import type { Attempt } from '../balance/worker-balance.ts'
import type { AttemptReport } from '../contracts/hook.ts'
import type { Logger } from '../contracts/log.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import { AttemptNotes } from './attempt-notes.ts'
import { PairAttempt } from './pair-attempt.ts'

/** @returns the notes of the worker whose answer counts; those of the other leg of a pair stand in the attempt */
export function openNotes(attempt: Attempt): AttemptNotes {
  if (attempt instanceof PairAttempt) attempt.prefillNotes = new AttemptNotes()
  return new AttemptNotes()
}

/** @param number 1-based, of the attempt within its request */
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

/** What a hook throws is logged and ends nothing. */
export function reportAttempts(ctx: RelayContext, reports: readonly AttemptReport[], log: Logger): void {
  try {
    for (const report of reports) ctx.hooks.onAttempt?.(ctx, report)
  } catch (error) {
    log.error({ err: error, request_id: ctx.requestId }, 'an onAttempt hook threw')
  }
}
