/** State of a stored response, from its record. */
import type { Job, ResponseRecord } from '#kernel'

/** Whether it has not ended. */
export function isRunning({ status }: ResponseRecord): boolean {
  return status === 'queued' || status === 'in_progress'
}

/**
 * Facts that say which run of a background response a record is of: a response that is started again numbers its events
 * from 0, in another log. Empty for the first run.
 */
export function runFacts(job: Job | undefined): ResponseRecord['facts'] {
  return job === undefined || job.attempts === 0 ? {} : { run: job.attempts }
}

/** 0 for the first run. */
export function runOf({ facts }: ResponseRecord): number {
  return typeof facts.run === 'number' ? facts.run : 0
}
