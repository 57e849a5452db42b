/**
 * round_robin: the available workers in turn.
 * @hot
 */
import type { CandidateView, Policy } from '../contracts/policy.ts'

/** Keeps the counter a small integer; the step at the wrap shifts one turn in a thousand million. */
const TURN_MASK = 0x3fff_ffff

/**
 * One counter, modulo the number of workers available now. It belongs to one model on one thread: with several data
 * threads each takes its own turns, so exact equality holds per thread.
 */
export class RoundRobin implements Policy {
  readonly name = 'round_robin'
  readonly needsBody = false
  #turn = 0

  pick(candidates: CandidateView): number {
    const index = this.#turn % candidates.length
    this.#turn = (this.#turn + 1) & TURN_MASK
    return index
  }
}
