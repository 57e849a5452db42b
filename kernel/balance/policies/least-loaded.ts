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
  const { length } = candidates
  let best = 0
  let fewest = candidates.inFlight(0)
  let most = fewest
  for (let i = 1; i < length; i++) {
    const inFlight = candidates.inFlight(i)
    if (inFlight > most) most = inFlight
    if (inFlight > fewest) continue
    if (inFlight < fewest || goesFirst(candidates, i, best, ledger)) {
      best = i
      fewest = inFlight
    }
  }
  fewestInFlight = fewest
  mostInFlight = most
  return best
}

/** Between two with as many in flight. */
function goesFirst(candidates: CandidateView, i: number, best: number, ledger: SlotLedger): boolean {
  const cost = candidates.worker(i).cost - candidates.worker(best).cost
  if (cost !== 0) return cost < 0
  return ledger.processed(candidates.slot(i)) < ledger.processed(candidates.slot(best))
}
