/** Waits for a worker that takes no new requests to finish those it has. */
import type { JobContext } from './jobs.ts'

const LOOK_MS = 100

/**
 * Resolves when nothing is in flight or the time is over. The first look is after a tenth of a second, so that
 * whoever asked for the removal can see it happen.
 *
 * @param inFlight requests running on the worker, over all threads
 */
export async function drainWorker(
  inFlight: () => number,
  settleSecs: number,
  job: JobContext,
): Promise<void> {
  const endsAtMs = performance.now() + settleSecs * 1000
  for (;;) {
    const leftMs = endsAtMs - performance.now()
    if (leftMs <= 0) return
    await job.wait(Math.min(LOOK_MS, leftMs))
    if (inFlight() === 0) return
  }
}
