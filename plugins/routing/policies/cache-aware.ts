/**
 * cache_aware: a prompt goes where most of it was sent before, unless that worker has too much to do.
 * @hot
 */

import type { CandidateView, CounterHandle, PickRequest, Policy, PolicyParts } from '#kernel'
import { branchCounters } from './branch-counters.ts'
import type { CacheAwareConfig } from './config.ts'
import { hashHigh, hashLow, hashText } from './hash64.ts'
import type { KvBlockIndex } from './kv-index/kv-block-index.ts'
import type { KvIndexes } from './kv-index/kv-indexes.ts'
import { fewestInFlight, findLeastLoaded, mostInFlight } from './least-loaded.ts'
import { hashPrefixes, prefixEnds } from './prefix-hashes.ts'
import { HOLDERS, type PrefixTable } from './prefix-table.ts'
import { promptBytes, readPrompt } from './prompt-bytes.ts'
import type { SlotLedger } from './slot-ledger.ts'

/**
 * hit: sent to a holder · miss: no holder of enough · spill: the holder had too much to do for what it holds ·
 * imbalanced: load overruled any holder · single: the model has one worker · event_*: by what engines report.
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

/** Token ids and text of equal bytes are different prompts. */
const TOKENS_SEED = 0x5bd1e995

/** Of text, on average; exact for token ids, which are words of four bytes. */
const BYTES_PER_TOKEN = 4

/** Requests in flight by which a holder may be ahead whatever it holds: so much comes and goes by chance. */
const SMALL_LEAD = 8

export interface CacheAwareParts extends Pick<PolicyParts, 'metrics' | 'leg'> {
  readonly table: PrefixTable
  readonly ledger: SlotLedger
  readonly kvIndexes: KvIndexes
  /** Called when the policy is closed. */
  readonly onClose: () => void
}

export class CacheAware implements Policy {
  readonly name = 'cache_aware'
  readonly needsBody = true
  private readonly config: CacheAwareConfig
  private readonly parts: CacheAwareParts
  private readonly branches: Readonly<Record<Branch, CounterHandle>>
  private readonly matchedBytes: CounterHandle
  private readonly seenBytes: CounterHandle
  /** Seed of the model asked for last. */
  private seededModel: string | null = null
  private seedLow = 0
  private seedHigh = 0
  /** Of the last pick, for `explain`. */
  private branch: Branch = 'no_prompt'
  private matched = 0
  private matchedPrefix = 0
  private slot = -1

  constructor(config: CacheAwareConfig, parts: CacheAwareParts) {
    this.config = config
    this.parts = parts
    const { metrics } = parts
    this.branches = branchCounters(metrics, 'weir_cache_aware_policy_branch_total', BRANCHES)
    this.matchedBytes = metrics
      .counter({
        name: 'weir_cache_aware_policy_matched_bytes_total',
        help: 'Prompt bytes that the chosen worker was sent before.',
      })
      .labels()
    this.seenBytes = metrics
      .counter({
        name: 'weir_cache_aware_policy_prompt_bytes_total',
        help: 'Prompt bytes looked up; with matched bytes, the hit rate.',
      })
      .labels()
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    const { table, ledger } = this.parts
    this.matched = 0
    const leastLoaded = findLeastLoaded(candidates, ledger)
    // With nobody to choose from there is nothing to remember.
    if (candidates.members.length === 1) return this.send(candidates, leastLoaded, 'single')
    const isImbalanced =
      this.isUneven(mostInFlight) || (readsKvUsage(this.config) && this.isKvImbalanced(candidates))
    const { tokenIds } = request
    if (!isImbalanced && tokenIds !== null) {
      const blocks = this.parts.kvIndexes.find(request.model)
      if (blocks !== null) return this.pickByEvents(candidates, blocks, tokenIds, leastLoaded)
    }
    this.seed(request.model)
    const bytes = readPrompt(request)
    const seedHigh = tokenIds === null ? this.seedHigh : this.seedHigh ^ TOKENS_SEED
    const count = hashPrefixes(this.seedLow, seedHigh, tokenIds === null)
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
    if (count > 0) table.insert(count, ledger.nameOf(candidates.worker(index)))
    return this.send(candidates, index, branch)
  }

  explain(): string {
    if (this.branch === 'hit') return `prefix ${this.matched.toFixed(2)} on slot ${this.slot}`
    if (this.branch === 'event_hit') return `${this.matched} cached blocks on slot ${this.slot}`
    return `${this.branch}: least loaded is slot ${this.slot}`
  }

  close(): void {
    this.parts.onClose()
  }

  private send(candidates: CandidateView, index: number, branch: Branch): number {
    this.branch = branch
    this.slot = candidates.slot(index)
    this.parts.ledger.addProcessed(this.slot)
    this.branches[branch].inc()
    return index
  }

  /** Whether so many in flight are too many beside the fewest. Follows findLeastLoaded. */
  private isUneven(most: number): boolean {
    const { balanceAbsThreshold, balanceRelThreshold } = this.config
    return most - fewestInFlight > balanceAbsThreshold && most > balanceRelThreshold * fewestInFlight
  }

  /** Over the workers that have reported. */
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
   * The least loaded available holder of the longest prefix that has one. A holder that is away is passed over and keeps
   * its entries, so it gets its prompts back when it returns.
   */
  private findHolder(candidates: CandidateView, count: number): number {
    const { table, ledger } = this.parts
    const least = this.config.cacheThreshold * promptBytes
    for (let prefix = count - 1; prefix >= 0 && prefixEnds[prefix] > least; prefix--) {
      let best = -1
      for (let place = 0; place < HOLDERS; place++) {
        const name = table.holder(prefix, place)
        if (name === 0) continue
        const index = candidates.indexOfSlot(name >>> 16)
        if (index < 0 || ledger.nameOf(candidates.worker(index)) !== name) continue
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
   * A worker that holds a part only, such as a system prompt that many sessions share, must be worth waiting for:
   * computing that part elsewhere once gives the fleet one more holder. A prompt that is held whole stays.
   */
  private holderBranch(candidates: CandidateView, holder: number, count: number): Branch {
    if (holder < 0) return 'miss'
    const inFlight = candidates.inFlight(holder)
    // In a large fleet it need not be among those that were looked at before.
    if (this.isUneven(inFlight)) return 'imbalanced'
    if (this.matchedPrefix === count - 1) return 'hit'
    const ahead = inFlight - fewestInFlight
    if (ahead <= SMALL_LEAD) return 'hit'
    const heldTokens = prefixEnds[this.matchedPrefix] / BYTES_PER_TOKEN
    return ahead * this.config.queuedRequestTokens > heldTokens ? 'spill' : 'hit'
  }

  /** Engines say what they hold, so nothing is noted here. */
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
    if (best < 0) return this.send(candidates, leastLoaded, 'event_miss')
    this.matched = bestBlocks
    return this.send(candidates, best, 'event_hit')
  }

  /** Models never share, nor do the legs of a pair; aliases have been resolved before. */
  private seed(model: string): void {
    if (model === this.seededModel) return
    hashText(model, 0, this.parts.leg.length)
    this.seededModel = model
    this.seedLow = hashLow
    this.seedHigh = hashHigh
  }
}

/** Of two that hold as much: fewer in flight, then fewer blocks in all, then later. */
function isBetterHolder(candidates: CandidateView, index: KvBlockIndex, at: number, best: number): boolean {
  const load = candidates.inFlight(at) - candidates.inFlight(best)
  if (load !== 0) return load < 0
  const blocks = index.blocksOf(candidates.slot(at)) - index.blocksOf(candidates.slot(best))
  return blocks !== 0 ? blocks < 0 : at > best
}

/** Thresholds of 1 never overrule anything. */
export function readsKvUsage(config: CacheAwareConfig): boolean {
  return config.balanceTokenUsageThreshold < 1 || config.overloadTokenUsageThreshold < 1
}
