/**
 * cache_aware: sends a prompt to the worker that received most of it before, unless that worker is overloaded.
 * @hot
 */

import type { CandidateView, CounterHandle, PickRequest, Policy, PolicyParts } from '#kernel'
import { BranchPolicy } from './branch-policy.ts'
import type { CacheAwareConfig } from './config.ts'
import { fewestInFlight, findLeastLoaded, mostInFlight } from './find-least-loaded.ts'
import { ModelSeed } from './hash64.ts'
import type { KvBlockIndex } from './kv-index/kv-block-index.ts'
import type { PolicyState } from './policy-state.ts'
import { hashPrefixes, prefixEnds } from './prefixes/prefix-hashes.ts'
import { HOLDERS } from './prefixes/prefix-table.ts'
import { promptBytes, readPrompt } from './prefixes/prompt-bytes.ts'

/**
 * hit: sent to a holder · miss: no worker holds enough · spill: the holder's load outweighs what it holds ·
 * imbalanced: load decided · single: the model has one worker · event_*: decided by KV events of the engines.
 */
const BRANCHES = [
  'hit',
  'miss',
  'single',
  'spill',
  'imbalanced',
  'no_prompt',
  'event_hit',
  'event_miss',
] as const
type Branch = (typeof BRANCHES)[number]

/** Distinguishes token ids from text of equal bytes. */
const TOKENS_SEED = 0x5bd1e995

/** Average for text; exact for token ids. */
const BYTES_PER_TOKEN = 4

/** Additional requests in flight that a holder may always have, because load varies by this much at random. */
const SMALL_LEAD = 8

export class CacheAware extends BranchPolicy<Branch> implements Policy {
  readonly name = 'cache_aware'
  readonly needsBody = true
  private readonly config: CacheAwareConfig
  private readonly state: PolicyState
  private readonly matchedBytes: CounterHandle
  private readonly seenBytes: CounterHandle
  /** Separates models and the legs of a pair; aliases are already resolved. */
  private readonly seed: ModelSeed
  /** Result of the last pick, for `explain`. */
  private matched = 0
  private matchedPrefix = 0

  /** Prefixes are swept while an instance exists. */
  constructor(state: PolicyState, { metrics, leg }: PolicyParts) {
    super(metrics, 'weir_cache_aware_policy_branch_total', BRANCHES, state.counters)
    this.config = state.config.cacheAware
    this.state = state
    this.seed = new ModelSeed(leg.length)
    state.prefixSweep.open()
    this.matchedBytes = metrics
      .counter({
        name: 'weir_cache_aware_policy_matched_bytes_total',
        help: 'Prompt bytes that the picked worker had received before.',
      })
      .labels()
    this.seenBytes = metrics
      .counter({
        name: 'weir_cache_aware_policy_prompt_bytes_total',
        help: 'Prompt bytes looked up; matched bytes divided by these is the hit rate.',
      })
      .labels()
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    const { prefixes: table, counters } = this.state
    this.matched = 0
    const leastLoaded = findLeastLoaded(candidates, counters)
    // A single worker needs no lookup.
    if (candidates.members.length === 1) return this.chosen(candidates, leastLoaded, 'single')
    const isImbalanced =
      this.isUneven(mostInFlight) || (readsKvUsage(this.config) && this.isKvImbalanced(candidates))
    const { tokenIds } = request
    if (!isImbalanced && tokenIds !== null) {
      const blocks = this.state.kvIndexes.find(request.model)
      if (blocks !== null) return this.pickByEvents(candidates, blocks, tokenIds, leastLoaded)
    }
    this.seed.follow(request.model)
    const bytes = readPrompt(request)
    const seedHigh = tokenIds === null ? this.seed.high : this.seed.high ^ TOKENS_SEED
    const count = hashPrefixes(this.seed.low, seedHigh, tokenIds === null)
    this.seenBytes.inc(bytes)
    table.find(count)
    let index = leastLoaded
    let branch: Branch = 'imbalanced'
    if (!isImbalanced) {
      const holder = this.findHolder(candidates, count)
      branch = count === 0 ? 'no_prompt' : this.holderBranch(candidates, holder, count)
      if (branch === 'hit') index = holder
    }
    if (branch === 'hit') this.matchedBytes.inc(prefixEnds[this.matchedPrefix])
    if (count > 0) table.insert(count, counters.nameOf(candidates.worker(index)))
    return this.chosen(candidates, index, branch)
  }

  override explain(): string {
    if (this.branch === 'hit') return `prefix ${this.matched.toFixed(2)} on slot ${this.slot}`
    if (this.branch === 'event_hit') return `${this.matched} cached blocks on slot ${this.slot}`
    return `${this.branch}: least loaded is slot ${this.slot}`
  }

  close(): void {
    this.state.prefixSweep.close()
  }

  /** Whether `most` exceeds both balance thresholds. Call after findLeastLoaded. */
  private isUneven(most: number): boolean {
    const { balanceAbsThreshold, balanceRelThreshold } = this.config
    return most - fewestInFlight > balanceAbsThreshold && most > balanceRelThreshold * fewestInFlight
  }

  /** Considers only workers that have reported their load. */
  private isKvImbalanced(candidates: CandidateView): boolean {
    let least = 1
    let most = 0
    for (let i = 0; i < candidates.length; i++) {
      const usage = candidates.load(i)?.kvUsage ?? -1
      if (usage < 0) continue
      if (usage < least) least = usage
      if (usage > most) most = usage
    }
    const { balanceTokenUsageThreshold: spread, overloadTokenUsageThreshold: overload } = this.config
    return (overload < 1 && most > overload) || (spread < 1 && most - least > spread)
  }

  /**
   * The least loaded available holder of the longest prefix. Unavailable holders keep their entries and get their
   * prompts again when they return.
   */
  private findHolder(candidates: CandidateView, count: number): number {
    const { prefixes: table, counters } = this.state
    const least = this.config.cacheThreshold * promptBytes
    for (let prefix = count - 1; prefix >= 0 && prefixEnds[prefix] > least; prefix--) {
      let best = -1
      for (let place = 0; place < HOLDERS; place++) {
        const name = table.holder(prefix, place)
        if (name === 0) continue
        const index = candidates.indexOfSlot(name >>> 16)
        if (index < 0 || counters.nameOf(candidates.worker(index)) !== name) continue
        if (best < 0 || candidates.inFlight(index) < candidates.inFlight(best)) best = index
      }
      if (best < 0) continue
      this.matchedPrefix = prefix
      this.matched = prefixEnds[prefix] / promptBytes
      return best
    }
    return -1
  }

  /**
   * If a worker holds only part of the prompt, such as a shared system prompt, its additional load is weighed against
   * that part: computing it on another worker adds a holder. A prompt that is held completely stays.
   */
  private holderBranch(candidates: CandidateView, holder: number, count: number): Branch {
    if (holder < 0) return 'miss'
    const inFlight = candidates.inFlight(holder)
    // In a large fleet findLeastLoaded may not have examined this worker.
    if (this.isUneven(inFlight)) return 'imbalanced'
    if (this.matchedPrefix === count - 1) return 'hit'
    const ahead = inFlight - fewestInFlight
    if (ahead <= SMALL_LEAD) return 'hit'
    const heldTokens = prefixEnds[this.matchedPrefix] / BYTES_PER_TOKEN
    return ahead * this.config.queuedRequestTokens > heldTokens ? 'spill' : 'hit'
  }

  /** Uses the blocks that engines report; the prefix table is not updated. */
  private pickByEvents(
    candidates: CandidateView,
    index: KvBlockIndex,
    tokenIds: Uint32Array,
    leastLoaded: number,
  ): number {
    const matches = index.match(tokenIds)
    let best = -1
    let bestBlocks = 0
    for (let i = 0; i < matches; i++) {
      const at = candidates.indexOfSlot(index.matchSlots[i])
      const blocks = index.matchBlocks[i]
      if (at < 0 || blocks < bestBlocks) continue
      if (blocks === bestBlocks && best >= 0 && !isBetterHolder(candidates, index, at, best)) continue
      best = at
      bestBlocks = blocks
    }
    if (best < 0) return this.chosen(candidates, leastLoaded, 'event_miss')
    this.matched = bestBlocks
    return this.chosen(candidates, best, 'event_hit')
  }
}

/** Compares two holders of equally many blocks: fewer in flight, then fewer blocks in total, then the later one. */
function isBetterHolder(candidates: CandidateView, index: KvBlockIndex, at: number, best: number): boolean {
  const load = candidates.inFlight(at) - candidates.inFlight(best)
  if (load !== 0) return load < 0
  const blocks = index.blocksOf(candidates.slot(at)) - index.blocksOf(candidates.slot(best))
  return blocks !== 0 ? blocks < 0 : at > best
}

/** A threshold of 1 disables its check. */
export function readsKvUsage(config: CacheAwareConfig): boolean {
  return config.balanceTokenUsageThreshold < 1 || config.overloadTokenUsageThreshold < 1
}
