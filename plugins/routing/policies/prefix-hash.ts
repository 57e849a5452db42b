/**
 * prefix_hash: picks by the first tokens of the prompt on a hash ring, unless that worker is loaded above the mean.
 * @hot
 */

import type { CandidateView, PickRequest, Policy, PolicyParts } from '#kernel'
import { BranchPolicy } from './branch-policy.ts'
import type { PrefixHashConfig } from './config.ts'
import { findLeastLoaded } from './find-least-loaded.ts'
import { finish, hashHigh, hashLow, hashWords } from './hash64.ts'
import type { PolicyState } from './policy-state.ts'
import { promptWords, readPrompt } from './prefixes/prompt-bytes.ts'
import { HashRings } from './sessions/hash-ring.ts'
import type { WorkerCounters } from './worker-counters.ts'

const BRANCHES = ['ring_hit', 'load_balance_walk', 'no_tokens', 'fallback_least_load'] as const
type Branch = (typeof BRANCHES)[number]

/**
 * Picks the least loaded worker for a request without a prompt (`no_tokens`) or without a worker on the ring
 * (`fallback_least_load`).
 */
export class PrefixHash extends BranchPolicy<Branch> implements Policy {
  readonly name = 'prefix_hash'
  readonly needsBody = true
  private readonly config: PrefixHashConfig
  private readonly counters: WorkerCounters
  private readonly rings: HashRings

  constructor({ config, counters }: PolicyState, { metrics }: PolicyParts) {
    super(metrics, 'weir_prefix_hash_policy_branch_total', BRANCHES, counters)
    this.config = config.prefixHash
    this.counters = counters
    this.rings = new HashRings(config.consistentHashing.virtualNodes)
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    // A token is one 32-bit word of the prompt, or four bytes of text.
    const words = Math.min(this.config.prefixTokenCount, Math.ceil(readPrompt(request) / 4))
    if (words === 0) return this.leastLoaded(candidates, 'no_tokens')
    const ring = this.rings.of(candidates.members) // before the prompt: a ring that is built hashes too
    hashWords(promptWords, 0, words, 0, 0)
    finish(hashLow, hashHigh, words)
    const index = ring.find(hashHigh, candidates)
    if (index < 0) return this.leastLoaded(candidates, 'fallback_least_load')
    const bound = this.bound(candidates)
    if (candidates.inFlight(index) <= bound) return this.chosen(candidates, index, 'ring_hit')
    const other = findLeastLoaded(candidates, this.counters)
    const isWithin = candidates.inFlight(other) <= bound
    return this.chosen(candidates, isWithin ? other : index, 'load_balance_walk')
  }

  /** Maximum requests in flight of the picked worker; infinite if no requests are in flight. */
  private bound(candidates: CandidateView): number {
    const { length, slots, inFlightBySlot } = candidates
    let total = 0
    for (let i = 0; i < length; i++) total += inFlightBySlot[slots[i]]
    if (total === 0) return Number.POSITIVE_INFINITY
    return ((total + 1) / length) * this.config.loadFactor
  }

  private leastLoaded(candidates: CandidateView, branch: Branch): number {
    return this.chosen(candidates, findLeastLoaded(candidates, this.counters), branch)
  }
}
