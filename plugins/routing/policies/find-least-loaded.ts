/**
 * Finds the worker with the least load, the fallback of several policies.
 * @hot
 */
import type { CandidateView } from '#kernel'
import type { WorkerCounters } from './worker-counters.ts'

/** Maximum number of candidates examined per pick. */
export const WINDOW = 256
/** Score of an idle worker that is as fast as others; `CandidateView.slownessBySlot` is in parts of it. */
export const IDLE_SCORE = 256
/** Where the next window of a large fleet begins. */
let start = 0

/** Result of the last call: fewest and most requests in flight among the examined candidates. */
export let fewestInFlight = 0
export let mostInFlight = 0

/** Load with one more request, weighed by the recent latency of the worker. */
export function loadScore(inFlight: number, slowness: number): number {
  return (inFlight + 1) * (IDLE_SCORE + slowness)
}

/**
 * Orders by load score, then cost, then requests sent so far, then position. With more than 256 candidates,
 * each call examines the next 256.
 *
 * @returns a position in the view
 * @source docs/decisions/0004-balancing.md
 */
export function findLeastLoaded(candidates: CandidateView, counters: WorkerCounters): number {
  const { length, slots, inFlightBySlot, slownessBySlot, hasEqualCosts } = candidates
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
  let least = loadScore(fewest, slownessBySlot[slots[index]])
  let processed = counters.processed(slots[index])
  for (left--; left > 0; left--) {
    index = index + 1 === length ? 0 : index + 1
    const slot = slots[index]
    const inFlight = inFlightBySlot[slot]
    if (inFlight > most) most = inFlight
    if (inFlight < fewest) fewest = inFlight
    const score = loadScore(inFlight, slownessBySlot[slot])
    if (score > least) continue
    if (score === least) {
      const cost = hasEqualCosts ? 0 : candidates.worker(index).cost - candidates.worker(best).cost
      if (cost > 0 || (cost === 0 && counters.processed(slot) >= processed)) continue
    }
    best = index
    least = score
    processed = counters.processed(slot)
  }
  fewestInFlight = fewest
  mostInFlight = most
  return best
}
