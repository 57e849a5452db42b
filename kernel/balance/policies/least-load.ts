/**
 * least_load: join the shortest queue, by requests in flight over all threads.
 * @hot
 */
import type { CandidateView, Policy } from '../../contracts/policy.ts'

/**
 * Fewest in flight wins, then lower cost. Workers equal in both take turns: always taking the earliest would send all
 * of a quiet fleet's requests to its first worker, since each has finished before the next comes.
 *
 * @source routing facts 1.1 (12), 1.3 (no engine reports)
 */
export class LeastLoad implements Policy {
  readonly name = 'least_load'
  readonly needsBody = false
  /** Where the search begins: behind the worker chosen last, so that ties go round. */
  private start = 0

  pick(candidates: CandidateView): number {
    const { length } = candidates
    let index = this.start < length ? this.start : 0
    let best = index
    let bestLoad = candidates.inFlight(index)
    let bestCost = candidates.worker(index).cost
    for (let left = length - 1; left > 0; left--) {
      index = index + 1 === length ? 0 : index + 1
      const load = candidates.inFlight(index)
      if (load > bestLoad) continue
      const cost = candidates.worker(index).cost
      if (load === bestLoad && cost >= bestCost) continue
      best = index
      bestLoad = load
      bestCost = cost
    }
    this.start = best + 1
    return best
  }
}
