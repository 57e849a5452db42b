/**
 * power_of_two: the less loaded of two workers drawn at random; nearly as even as looking at all, at a fixed price.
 * @hot
 */
import type { CandidateView, Policy, RandomSource } from '#kernel'

/**
 * Less KV memory in use where both have reported it, fewer in flight otherwise: units are never mixed. Then lower cost,
 * then the one drawn first.
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

/** @returns below zero when the second is less loaded */
function compare(candidates: CandidateView, first: number, second: number): number {
  const usage = candidates.load(first)?.kvUsage ?? -1
  const otherUsage = candidates.load(second)?.kvUsage ?? -1
  if (usage >= 0 && otherUsage >= 0) return otherUsage - usage
  return candidates.inFlight(second) - candidates.inFlight(first)
}
