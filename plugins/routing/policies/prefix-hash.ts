/**
 * prefix_hash: the first tokens of the prompt decide, by a hash ring, as long as that worker has not much more to do
 * than the others.
 * @hot
 */

import type { CandidateView, CounterHandle, PickRequest, Policy, PolicyParts } from '#kernel'
import { branchCounters } from './branch-counters.ts'
import type { PrefixHashConfig } from './config.ts'
import { HashRings } from './hash-ring.ts'
import { finish, hashHigh, hashLow, hashWords } from './hash64.ts'
import { findLeastLoaded } from './least-loaded.ts'
import { promptWords, readPrompt } from './prompt-bytes.ts'
import type { SlotLedger } from './slot-ledger.ts'

const BRANCHES = ['ring_hit', 'load_balance_walk', 'no_tokens', 'fallback_least_load'] as const
type Branch = (typeof BRANCHES)[number]

export interface PrefixHashParts extends Pick<PolicyParts, 'metrics'> {
  readonly virtualNodes: number
  readonly ledger: SlotLedger
}

/**
 * Without a prompt (`no_tokens`) and without a ring (`fallback_least_load`) the least loaded worker is taken: a request
 * that has nothing to hash is no reason to refuse it.
 */
export class PrefixHash implements Policy {
  readonly name = 'prefix_hash'
  readonly needsBody = true
  private readonly config: PrefixHashConfig
  private readonly ledger: SlotLedger
  private readonly rings: HashRings
  private readonly branches: Readonly<Record<Branch, CounterHandle>>
  private branch: Branch = 'no_tokens'
  private slot = -1

  constructor(config: PrefixHashConfig, parts: PrefixHashParts) {
    this.config = config
    this.ledger = parts.ledger
    this.rings = new HashRings(parts.virtualNodes)
    this.branches = branchCounters(parts.metrics, 'weir_prefix_hash_policy_branch_total', BRANCHES)
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    // A token is a word of the prompt, and taken to be four bytes of text.
    const words = Math.min(this.config.prefixTokenCount, Math.ceil(readPrompt(request) / 4))
    if (words === 0) return this.leastLoaded(candidates, 'no_tokens')
    const ring = this.rings.of(candidates.members) // before the prompt: a ring that is built hashes too
    hashWords(promptWords, 0, words, 0, 0)
    finish(hashLow, hashHigh, words)
    const index = ring.find(hashHigh, candidates)
    if (index < 0) return this.leastLoaded(candidates, 'fallback_least_load')
    const bound = this.bound(candidates)
    if (candidates.inFlight(index) <= bound) return this.chosen(candidates, index, 'ring_hit')
    const other = findLeastLoaded(candidates, this.ledger)
    const isWithin = candidates.inFlight(other) <= bound
    return this.chosen(candidates, isWithin ? other : index, 'load_balance_walk')
  }

  explain(): string {
    return `${this.branch}: slot ${this.slot}`
  }

  /** Most requests in flight that a worker may have; without limit when nobody has any. */
  private bound(candidates: CandidateView): number {
    const { length, slots, inFlightBySlot } = candidates
    let total = 0
    for (let i = 0; i < length; i++) total += inFlightBySlot[slots[i]]
    if (total === 0) return Number.POSITIVE_INFINITY
    return ((total + 1) / length) * this.config.loadFactor
  }

  private leastLoaded(candidates: CandidateView, branch: Branch): number {
    return this.chosen(candidates, findLeastLoaded(candidates, this.ledger), branch)
  }

  private chosen(candidates: CandidateView, index: number, branch: Branch): number {
    this.branch = branch
    this.slot = candidates.slot(index)
    this.ledger.addProcessed(this.slot)
    this.branches[branch].inc()
    return index
  }
}
