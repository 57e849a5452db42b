/** Periodic background work in batches, such as deleting expired records; an error does not stop it. */
import type { Logger } from '#kernel'
import { RepeatedWork } from '../threads/repeated-work.ts'

/** Maximum records per batch. */
const SLICE = 256
/** Pause between two batches, so that other work can run. */
const PAUSE_MS = 10

export class PeriodicBatches extends RepeatedWork {
  /**
   * @param act processes up to `limit` records and returns their number; fewer means that none is left
   * @param intervalMs pause when none is left
   * @param what log message of a failure, such as `expired records could not be deleted`
   */
  constructor(act: (limit: number) => Promise<number>, intervalMs: number, log: Logger, what: string) {
    super(async () => {
      let count = 0
      try {
        count = await act(SLICE)
      } catch (error) {
        log.warn({ err: error }, what)
      }
      return count < SLICE ? intervalMs : PAUSE_MS
    }, intervalMs)
  }
}
