/**
 * Finds the worker with the fewest requests in flight, the fallback of several policies.
 * @hot
 */
import type { CandidateView } from '#kernel'
import type { WorkerCounters } from './worker-counters.ts'

/** Maximum number of candidates examined per pick. */
export const WINDOW = 256
/** Where the next window of a large fleet begins. */
let start = 0

/** Result of the last call: fewest and most requests in flight among the examined candidates. */
export let fewestInFlight = 0
export let mostInFlight = 0

/**
 * Orders by requests in flight, then cost, then requests sent so far, then position. With more than 256 candidates,
 * each call examines the next 256.
 *
 * @returns a position in the view
 * @source docs/decisions/0004-balancing.md
 */
export function findLeastLoaded(candidates: CandidateView, counters: WorkerCounters): number {
  const { length, slots, inFlightBySlot, hasEqualCosts } = candidates
  let index = 0
  let left = length
  if (length > WINDOW) {
    index = start < length ? start : 0
    left = WINDOW
    start = index + WINDOW
  }
  let best = index
  let fewest = inFlightBySlot[slots[index]]
  let most = fewest
  let processed = counters.processed(slots[index])
  for (left--; left > 0; left--) {
    index = index + 1 === length ? 0 : index + 1
    const slot = slots[index]
    const inFlight = inFlightBySlot[slot]
    if (inFlight > most) most = inFlight
    if (inFlight > fewest) continue
    if (inFlight === fewest) {
      const cost = hasEqualCosts ? 0 : candidates.worker(index).cost - candidates.worker(best).cost
      if (cost > 0 || (cost === 0 && counters.processed(slot) >= processed)) continue
    }
    best = index
    fewest = inFlight
    processed = counters.processed(slot)
  }
  fewestInFlight = fewest
  mostInFlight = most
  return best
}
