/**
 * bucket: prompts of similar length go to the same worker, so that short ones do not wait behind long ones.
 * @hot
 */

import type { CandidateView, PickRequest, Policy, WorkerEntry } from '#kernel'
import type { BucketConfig } from './config.ts'
import { readPrompt, wholePromptBytes } from './prompt-bytes.ts'

/** Prompts up to this are spread evenly over the workers until sizes have been seen, in bytes. */
const FIRST_RANGE_BYTES = 4_096
/** Requests that the window holds; with more in an interval, the newest count. */
const WINDOW = 4_096
/** Borders move when the mean size a worker gets has changed by more than this factor. */
const CHANGE_FACTOR = 2

/** Each thread learns from the requests that it sees; they are a fair sample of all. */
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
  private readonly takers = new Uint16Array(WINDOW)
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
    // The worker of the bucket may be away.
    if (index < 0) index = this.lightest(candidates)
    this.note(candidates.slot(index), size, now)
    return index
  }

  /** New buckets when workers came or left; another record of the same workers changes nothing. */
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
    this.sums[this.takers[this.oldest]] -= this.sizes[this.oldest]
    this.oldest = (this.oldest + 1) % WINDOW
    this.count--
  }

  private note(slot: number, size: number, now: number): void {
    let taker = 0
    while (taker < this.members.length - 1 && this.members[taker].slot !== slot) taker++
    if (this.count === WINDOW) this.dropOldest()
    const at = (this.oldest + this.count) % WINDOW
    this.times[at] = now
    this.sizes[at] = size
    this.takers[at] = taker
    this.sums[taker] += size
    this.count++
  }

  /** Cuts the sizes seen so that every bucket carries as many bytes. One sort of at most WINDOW numbers an interval. */
  private get intervalMs(): number {
    return this.config.adjustIntervalSecs * 1000
  }

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

  /** The first bucket that ends above the size; the last one takes whatever is longer. */
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

  /** The available worker with the fewest bytes, the earliest of several. */
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
