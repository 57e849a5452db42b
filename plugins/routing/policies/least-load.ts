/**
 * least_load: shortest estimated wait by what engines report, requests in flight where they report nothing.
 * @hot
 */

import type { CandidateView, EngineLoad, PickRequest, Policy } from '#kernel'
import type { LeastLoadConfig } from './config.ts'
import { WINDOW } from './least-loaded.ts'
import type { SlotLedger } from './slot-ledger.ts'

const NOT_KNOWN = -1
/** KV memory counts as no fuller than this: at 1 the pressure would be infinite. */
const FULLEST = 0.999

/**
 * The lowest score wins, then lower cost. Workers equal in both take turns: always taking the earliest would send all
 * of a quiet fleet's requests to its first worker, since each has finished before the next comes.
 */
export class LeastLoad implements Policy {
  readonly name = 'least_load'
  readonly needsBody = false
  private readonly config: LeastLoadConfig
  private readonly ledger: SlotLedger
  /** Where the search begins: behind the worker chosen last, so that ties go round. */
  private start = 0
  /** Of this pick: tokens a second of a worker that told none; 0 when nobody has reported. */
  private nominal = 0
  private bestScore = 0
  private slot = -1

  constructor(config: LeastLoadConfig, ledger: SlotLedger) {
    this.config = config
    this.ledger = ledger
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    this.nominal = NOT_KNOWN
    let best = candidates.length === 1 || !candidates.hasLoads ? -1 : this.shortestWait(candidates)
    if (best < 0) best = this.fewestInFlight(candidates)
    else this.giveCredit(candidates, best, request)
    this.start = best + 1
    this.slot = candidates.slot(best)
    return best
  }

  /** Nobody has reported: a worker with nothing to do is as good as any, so the search ends with the first. */
  private fewestInFlight(candidates: CandidateView): number {
    const { length, slots, inFlightBySlot, hasEqualCosts } = candidates
    let index = this.start < length ? this.start : 0
    let best = index
    let fewest = inFlightBySlot[slots[index]]
    for (let left = length - 1; left > 0 && !(fewest === 0 && hasEqualCosts); left--) {
      index = index + 1 === length ? 0 : index + 1
      const inFlight = inFlightBySlot[slots[index]]
      if (inFlight > fewest) continue
      if (inFlight === fewest && (hasEqualCosts || !isCheaper(candidates, index, best))) continue
      best = index
      fewest = inFlight
    }
    this.nominal = 0
    this.bestScore = fewest
    return best
  }

  /** Of a large fleet, the next ones in turn are looked at. @returns -1 when none of these workers has reported */
  private shortestWait(candidates: CandidateView): number {
    const { length, hasEqualCosts } = candidates
    let index = this.start < length ? this.start : 0
    let best = index
    let bestScore = this.score(candidates, index)
    for (let left = Math.min(length, WINDOW) - 1; left > 0; left--) {
      index = index + 1 === length ? 0 : index + 1
      const score = this.score(candidates, index)
      if (score > bestScore) continue
      if (score === bestScore && (hasEqualCosts || !isCheaper(candidates, index, best))) continue
      best = index
      bestScore = score
    }
    this.bestScore = bestScore
    return this.nominal === 0 ? -1 : best
  }

  explain(): string {
    const score = this.nominal !== 0 ? `${this.bestScore.toFixed(3)} s` : `${this.bestScore} in flight`
    return `${score} on slot ${this.slot}`
  }

  /** The mean of those that told theirs; 0 when no worker has reported anything. */
  private nominalThroughput(candidates: CandidateView): number {
    let sum = 0
    let told = 0
    let hasReport = false
    for (let i = 0; i < candidates.length; i++) {
      const load = candidates.load(i)
      if (load === null) continue
      hasReport = true
      if (load.tokensPerSecond <= 0) continue
      sum += load.tokensPerSecond
      told++
    }
    if (told > 0) return sum / told
    return hasReport ? this.config.defaultThroughput : 0
  }

  /** Seconds that a request would wait. */
  private score(candidates: CandidateView, index: number): number {
    const load = candidates.load(index)
    if (load === null) {
      // Looked up only when somebody has told nothing.
      if (this.nominal === NOT_KNOWN) this.nominal = this.nominalThroughput(candidates)
      return this.nominal === 0 ? 0 : this.inFlightTokens(candidates, index) / this.nominal
    }
    const throughput = load.tokensPerSecond > 0 ? load.tokensPerSecond : this.config.defaultThroughput
    // An engine that does not tell its queue is judged by what is in flight, which has the sent ones in it.
    const queued =
      load.queuedTokens < 0
        ? this.inFlightTokens(candidates, index)
        : load.queuedTokens + this.ledger.credit(candidates.slot(index), load.atMs)
    return queued / throughput + this.pressure(load)
  }

  private inFlightTokens(candidates: CandidateView, index: number): number {
    return candidates.inFlight(index) * this.config.meanPrefillTokens
  }

  private pressure(load: EngineLoad): number {
    if (load.kvUsage <= 0) return 0
    const used = Math.min(load.kvUsage, FULLEST)
    return (this.config.kvPressureWeight * used) / (1 - used)
  }

  /** What was sent since the report is not in it: without this, all would run to one worker until the next. */
  private giveCredit(candidates: CandidateView, index: number, request: PickRequest): void {
    if (candidates.load(index) === null) return
    const tokens = request.tokenIds === null ? this.config.meanPrefillTokens : request.tokenIds.length
    this.ledger.addCredit(candidates.slot(index), tokens)
  }
}

function isCheaper(candidates: CandidateView, index: number, other: number): boolean {
  return candidates.worker(index).cost < candidates.worker(other).cost
}
