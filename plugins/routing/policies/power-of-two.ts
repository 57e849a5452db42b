/**
 * power_of_two: picks the less loaded of two random workers, in constant time.
 * @hot
 */
import type { CandidateView, Policy, RandomSource } from '#kernel'
import { loadScore } from './find-least-loaded.ts'

/**
 * Compares KV cache use if both workers report it, else requests in flight and recent latency; then cost, then the order of
 * drawing.
 */
export class PowerOfTwo implements Policy {
  readonly name = 'power_of_two'
  readonly needsBody = false
  private readonly random: RandomSource

  constructor(random: RandomSource) {
    this.random = random
  }

  pick(candidates: CandidateView): number {
    const { length } = candidates
    if (length === 1) return 0
    const first = Math.floor(this.random() * length)
    const second = (first + 1 + Math.floor(this.random() * (length - 1))) % length
    const difference = compare(candidates, first, second)
    if (difference !== 0) return difference < 0 ? second : first
    return candidates.worker(second).cost < candidates.worker(first).cost ? second : first
  }
}

/** @returns a negative number if the second is less loaded */
function compare(candidates: CandidateView, first: number, second: number): number {
  const usage = candidates.load(first)?.kvUsage ?? -1
  const otherUsage = candidates.load(second)?.kvUsage ?? -1
  if (usage >= 0 && otherUsage >= 0) return otherUsage - usage
  return scoreOf(candidates, second) - scoreOf(candidates, first)
}

function scoreOf(candidates: CandidateView, index: number): number {
  return loadScore(candidates.inFlight(index), candidates.slownessBySlot[candidates.slot(index)])
}
