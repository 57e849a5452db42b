/**
 * The worker with the fewest requests in flight, for policies that fall back to it.
 * @hot
 */
import type { CandidateView } from '../../contracts/policy.ts'
import type { SlotLedger } from './slot-ledger.ts'

/** Of the last call: fewest and most in flight among the candidates. */
export let fewestInFlight = 0
export let mostInFlight = 0

/**
 * Fewest in flight, then lower cost, then fewest requests so far, then earliest.
 *
 * @returns a position in the view
 * @source routing facts 1.4 (1), 1.1 (12)
 */
export function findLeastLoaded(candidates: CandidateView, ledger: SlotLedger): number {
  const { length, slots, inFlightBySlot, hasEqualCosts } = candidates
  let best = 0
  let fewest = inFlightBySlot[slots[0]]
  let most = fewest
  let processed = ledger.processed(slots[0])
  for (let i = 1; i < length; i++) {
    const slot = slots[i]
    const inFlight = inFlightBySlot[slot]
    if (inFlight > most) most = inFlight
    if (inFlight > fewest) continue
    if (inFlight === fewest) {
      const cost = hasEqualCosts ? 0 : candidates.worker(i).cost - candidates.worker(best).cost
      if (cost > 0 || (cost === 0 && ledger.processed(slot) >= processed)) continue
    }
    best = i
    fewest = inFlight
    processed = ledger.processed(slot)
  }
  fewestInFlight = fewest
  mostInFlight = most
  return best
}
