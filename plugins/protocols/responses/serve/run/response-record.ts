/** What the record of a stored response says about its state. */
import type { Job, ResponseRecord } from '#kernel'

/** It has not ended. */
export function isRunning({ status }: ResponseRecord): boolean {
  return status === 'queued' || status === 'in_progress'
}

/**
 * Facts that say which run of a background response a record is of: a response that is started again numbers its events
 * anew, in another log. Empty for the first run.
 */
export function runFacts(job: Job | undefined): ResponseRecord['facts'] {
  return job === undefined || job.attempts === 0 ? {} : { run: job.attempts }
}

/** 0 for the first run. */
export function runOf({ facts }: ResponseRecord): number {
  return typeof facts.run === 'number' ? facts.run : 0
}
