/**
 * least_load: picks the shortest estimated wait from engine load reports, or the fewest requests in flight without them.
 * @hot
 */

import type { CandidateView, EngineLoad, PickRequest, Policy } from '#kernel'
import type { LeastLoadConfig } from './config.ts'
import { IDLE_SCORE, loadScore, WINDOW } from './find-least-loaded.ts'
import type { WorkerCounters } from './worker-counters.ts'

const NOT_KNOWN = -1
/** Upper bound of KV cache use, because the pressure is infinite at 1. */
const MAX_KV_USAGE = 0.999

/**
 * The lowest score wins, then lower cost, then round robin: always taking the first would send all requests of an idle
 * fleet to one worker.
 */
export class LeastLoad implements Policy {
  readonly name = 'least_load'
  readonly needsBody = false
  private readonly config: LeastLoadConfig
  private readonly counters: WorkerCounters
  /** The search starts after the last picked worker, so that ties are resolved round robin. */
  private start = 0
  /** Assumed tokens per second of a worker without a report, in this pick; 0 if no worker has reported. */
  private nominal = 0
  private bestScore = 0
  private slot = -1

  constructor(config: LeastLoadConfig, counters: WorkerCounters) {
    this.config = config
    this.counters = counters
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    this.nominal = NOT_KNOWN
    let best = candidates.length === 1 || !candidates.hasLoads ? -1 : this.shortestWait(candidates)
    if (best < 0) best = this.leastLoaded(candidates)
    else this.countSentTokens(candidates, best, request)
    this.start = best + 1
    this.slot = candidates.slot(best)
    return best
  }

  /** Used without reports; the search ends at the first idle worker. */
  private leastLoaded(candidates: CandidateView): number {
    const { length, slots, inFlightBySlot, slownessBySlot, hasEqualCosts } = candidates
    let index = this.start < length ? this.start : 0
    let best = index
    let least = loadScore(inFlightBySlot[slots[index]], slownessBySlot[slots[index]])
    for (let left = length - 1; left > 0 && !(least <= IDLE_SCORE && hasEqualCosts); left--) {
      index = index + 1 === length ? 0 : index + 1
      const score = loadScore(inFlightBySlot[slots[index]], slownessBySlot[slots[index]])
      if (score > least) continue
      if (score === least && (hasEqualCosts || !isCheaper(candidates, index, best))) continue
      best = index
      least = score
    }
    this.nominal = 0
    this.bestScore = inFlightBySlot[slots[best]]
    return best
  }

  /** Examines at most WINDOW candidates. @returns -1 if none of them has reported */
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

  /** Mean throughput of the workers that report it; 0 if no worker has reported. */
  private nominalThroughput(candidates: CandidateView): number {
    let sum = 0
    let count = 0
    let hasReport = false
    for (let i = 0; i < candidates.length; i++) {
      const load = candidates.load(i)
      if (load === null) continue
      hasReport = true
      if (load.tokensPerSecond <= 0) continue
      sum += load.tokensPerSecond
      count++
    }
    if (count > 0) return sum / count
    return hasReport ? this.config.defaultThroughput : 0
  }

  /** Estimated wait in seconds. */
  private score(candidates: CandidateView, index: number): number {
    const load = candidates.load(index)
    if (load === null) {
      // Computed only if a worker has no report.
      if (this.nominal === NOT_KNOWN) this.nominal = this.nominalThroughput(candidates)
      return this.nominal === 0 ? 0 : this.inFlightTokens(candidates, index) / this.nominal
    }
    const throughput = load.tokensPerSecond > 0 ? load.tokensPerSecond : this.config.defaultThroughput
    // Without a reported queue, requests in flight are used, which include those sent since the report.
    const queued =
      load.queuedTokens < 0
        ? this.inFlightTokens(candidates, index)
        : load.queuedTokens + this.counters.credit(candidates.slot(index), load.atMs)
    return queued / throughput + this.pressure(load)
  }

  private inFlightTokens(candidates: CandidateView, index: number): number {
    const slot = candidates.slot(index)
    const weighed = loadScore(candidates.inFlightBySlot[slot], candidates.slownessBySlot[slot])
    return (weighed / IDLE_SCORE - 1) * this.config.meanPrefillTokens
  }

  private pressure(load: EngineLoad): number {
    if (load.kvUsage <= 0) return 0
    const used = Math.min(load.kvUsage, MAX_KV_USAGE)
    return (this.config.kvPressureWeight * used) / (1 - used)
  }

  /** Counts tokens sent since the last report, so that not all requests go to one worker until the next. */
  private countSentTokens(candidates: CandidateView, index: number, request: PickRequest): void {
    if (candidates.load(index) === null) return
    const tokens = request.tokenIds === null ? this.config.meanPrefillTokens : request.tokenIds.length
    this.counters.addCredit(candidates.slot(index), tokens)
  }
}

function isCheaper(candidates: CandidateView, index: number, other: number): boolean {
  return candidates.worker(index).cost < candidates.worker(other).cost
}
