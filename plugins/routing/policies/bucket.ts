/**
 * bucket: sends prompts of similar length to the same worker, so that short ones do not wait behind long ones.
 * @hot
 */

import type { CandidateView, PickRequest, Policy, WorkerEntry } from '#kernel'
import type { BucketConfig } from './config.ts'
import { readPrompt, wholePromptBytes } from './prefixes/prompt-bytes.ts'

/** Upper end of the initial size ranges, in bytes. */
const FIRST_RANGE_BYTES = 4_096
/** Maximum number of requests in the sample window. */
const WINDOW = 4_096
/** Ranges are adjusted if the mean bytes per worker have changed by more than this factor. */
const CHANGE_FACTOR = 2

/** Each thread samples its own requests. */
export class Bucket implements Policy {
  readonly name = 'bucket'
  readonly needsBody = true
  private readonly config: BucketConfig
  private members: readonly WorkerEntry[] = []
  /** Bucket i ends below borders[i]; the last one is open. */
  private borders = new Float64Array(0)
  /** Bytes in the window by position in `members`. */
  private sums = new Float64Array(0)
  /** The window: a ring of samples. */
  private readonly times = new Float64Array(WINDOW)
  private readonly sizes = new Float64Array(WINDOW)
  private readonly workers = new Uint16Array(WINDOW)
  private oldest = 0
  private count = 0
  private adjustedAtMs = 0
  /** Mean bytes a worker at the last adjustment; 0 before the first. */
  private adjustedMean = 0

  constructor(config: BucketConfig) {
    this.config = config
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    const now = Date.now()
    if (candidates.members !== this.members) this.follow(candidates.members, now)
    readPrompt(request)
    const size = wholePromptBytes
    this.expire(now)
    if (now - this.adjustedAtMs >= this.intervalMs) this.adjust(now)
    let index = this.isImbalanced() ? -1 : this.indexOf(candidates, this.bucketOf(size))
    // The worker of the bucket may be unavailable.
    if (index < 0) index = this.lightest(candidates)
    this.note(candidates.slot(index), size, now)
    return index
  }

  /** Resets the buckets if the set of workers has changed. */
  private follow(members: readonly WorkerEntry[], now: number): void {
    const isSame =
      members.length === this.members.length &&
      members.every((worker, index) => worker.id === this.members[index].id)
    this.members = members
    if (isSame) return
    this.borders = new Float64Array(members.length)
    for (let i = 0; i < members.length; i++) {
      this.borders[i] = (FIRST_RANGE_BYTES / members.length) * (i + 1)
    }
    this.sums = new Float64Array(members.length)
    this.count = 0
    this.adjustedAtMs = now
    this.adjustedMean = 0
  }

  private expire(now: number): void {
    while (this.count > 0 && now - this.times[this.oldest] > this.intervalMs) this.dropOldest()
  }

  private dropOldest(): void {
    this.sums[this.workers[this.oldest]] -= this.sizes[this.oldest]
    this.oldest = (this.oldest + 1) % WINDOW
    this.count--
  }

  private note(slot: number, size: number, now: number): void {
    let member = 0
    while (member < this.members.length - 1 && this.members[member].slot !== slot) member++
    if (this.count === WINDOW) this.dropOldest()
    const at = (this.oldest + this.count) % WINDOW
    this.times[at] = now
    this.sizes[at] = size
    this.workers[at] = member
    this.sums[member] += size
    this.count++
  }

  private get intervalMs(): number {
    return this.config.adjustIntervalSecs * 1000
  }

  /** Sets the ranges so that every bucket receives the same number of bytes; sorts at most WINDOW sizes. */
  private adjust(now: number): void {
    this.adjustedAtMs = now
    if (this.count === 0) return
    const sizes = new Float64Array(this.count)
    let total = 0
    for (let i = 0; i < this.count; i++) {
      sizes[i] = this.sizes[(this.oldest + i) % WINDOW]
      total += sizes[i]
    }
    const share = total / this.borders.length
    const change = this.adjustedMean === 0 ? Number.POSITIVE_INFINITY : share / this.adjustedMean
    if (share === 0 || (change <= CHANGE_FACTOR && change >= 1 / CHANGE_FACTOR)) return
    this.adjustedMean = share
    sizes.sort()
    let bucket = 0
    let carried = 0
    for (let i = 0; i < sizes.length; i++) {
      carried += sizes[i]
      while (bucket < this.borders.length && carried >= share * (bucket + 1))
        this.borders[bucket++] = sizes[i] + 1
    }
    while (bucket < this.borders.length) this.borders[bucket++] = sizes[sizes.length - 1] + 1
  }

  private isImbalanced(): boolean {
    let most = 0
    let fewest = Number.POSITIVE_INFINITY
    for (let i = 0; i < this.sums.length; i++) {
      if (this.sums[i] > most) most = this.sums[i]
      if (this.sums[i] < fewest) fewest = this.sums[i]
    }
    return most - fewest > this.config.balanceAbsThreshold && most > this.config.balanceRelThreshold * fewest
  }

  /** The first bucket that ends above the size, else the last one. */
  private bucketOf(size: number): number {
    let low = 0
    let high = this.borders.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (size < this.borders[middle]) high = middle
      else low = middle + 1
    }
    return low
  }

  private indexOf(candidates: CandidateView, bucket: number): number {
    return candidates.indexOfSlot(this.members[bucket].slot)
  }

  /** The available worker with the fewest bytes; the first one on a tie. */
  private lightest(candidates: CandidateView): number {
    let best = -1
    let fewest = Number.POSITIVE_INFINITY
    for (let member = 0; member < this.members.length; member++) {
      if (this.sums[member] >= fewest) continue
      const index = this.indexOf(candidates, member)
      if (index < 0) continue
      best = index
      fewest = this.sums[member]
    }
    return best < 0 ? 0 : best
  }
}
