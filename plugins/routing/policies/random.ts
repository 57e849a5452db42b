/**
 * random: every available worker is equally likely.
 * @hot
 */
import type { CandidateView, Policy, RandomSource } from '#kernel'

export class RandomChoice implements Policy {
  readonly name = 'random'
  readonly needsBody = false
  private readonly random: RandomSource

  constructor(random: RandomSource) {
    this.random = random
  }

  pick(candidates: CandidateView): number {
    return Math.floor(this.random() * candidates.length)
  }
}
