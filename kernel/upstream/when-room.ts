/** Waits for room at a worker that is full with other requests. */
import type { WorkerBalance } from '../balance/worker-balance.ts'

/** Mean interval of the checks. */
const CHECK_MS = 100

/**
 * Calls back once a request of the worker has ended since. Checks at random times, so that requests that failed together do
 * not start, and fail, together again.
 *
 * @param latestMs `performance.now()` of the call at the latest
 * @returns cancels the wait
 */
export function whenRoom(
  balance: Pick<WorkerBalance, 'inFlight'>,
  slot: number,
  latestMs: number,
  onRoom: () => void,
): () => void {
  // The failed attempt still counts.
  const mostInFlight = Math.max(0, balance.inFlight(slot) - 2)
  const check = () => {
    if (balance.inFlight(slot) <= mostInFlight || performance.now() >= latestMs) onRoom()
    else timer = setTimeout(check, randomDelayMs())
  }
  let timer = setTimeout(check, randomDelayMs())
  return () => clearTimeout(timer)
}

function randomDelayMs(): number {
  return CHECK_MS * (0.5 + Math.random())
}
