/** Which run of a background response its record and its event log are of: one that is begun anew numbers its events anew. */
import type { Job, ResponseRecord } from '#kernel'

type Facts = ResponseRecord['facts']

/** For the record. Nothing for the first run. */
export function runFacts(job: Job | undefined): Facts {
  return job === undefined || job.attempts === 0 ? {} : { run: job.attempts }
}

/** 0 for the first one. */
export function runOf({ facts }: ResponseRecord): number {
  return typeof facts.run === 'number' ? facts.run : 0
}
