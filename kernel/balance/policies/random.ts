/**
 * random: every available worker is equally likely.
 * @hot
 */
import type { CandidateView, Policy } from '../../contracts/policy.ts'

/** Uniform numbers from 0 up to but not including 1, like Math.random. */
export type RandomSource = () => number

/** @source routing facts 1.2 */
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
