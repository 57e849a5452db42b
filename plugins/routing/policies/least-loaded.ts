/**
 * The worker with the fewest requests in flight, for policies that fall back to it.
 * @hot
 */
import type { CandidateView } from '#kernel'
import type { SlotLedger } from './slot-ledger.ts'

/** So many are looked at: the best of them is nearly as good as the best of thousands, at a fixed price. */
export const WINDOW = 256
/** Where the next window of a large fleet begins. */
let start = 0

/** Of the last call: fewest and most in flight among the candidates that were looked at. */
export let fewestInFlight = 0
export let mostInFlight = 0

/**
 * Fewest in flight, then lower cost, then fewest requests so far, then earliest. Of more than 256 candidates, the next
 * 256 in turn are looked at.
 *
 * @returns a position in the view
 * @source docs/decisions/0004-balancing.md
 */
export function findLeastLoaded(candidates: CandidateView, ledger: SlotLedger): number {
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
  let processed = ledger.processed(slots[index])
  for (left--; left > 0; left--) {
    index = index + 1 === length ? 0 : index + 1
    const slot = slots[index]
    const inFlight = inFlightBySlot[slot]
    if (inFlight > most) most = inFlight
    if (inFlight > fewest) continue
    if (inFlight === fewest) {
      const cost = hasEqualCosts ? 0 : candidates.worker(index).cost - candidates.worker(best).cost
      if (cost > 0 || (cost === 0 && ledger.processed(slot) >= processed)) continue
    }
    best = index
    fewest = inFlight
    processed = ledger.processed(slot)
  }
  fewestInFlight = fewest
  mostInFlight = most
  return best
}
