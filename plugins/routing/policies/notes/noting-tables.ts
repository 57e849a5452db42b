/**
 * The tables of prefixes and sessions on the data threads of a gateway that shares them: what a pick adds goes to a ring,
 * from which control sends it to the other gateways.
 * @hot
 */
import { MAX_PREFIXES } from '../prefixes/prefix-hashes.ts'
import { PrefixTable } from '../prefixes/prefix-table.ts'
import { StickySessions, type StickySessionsOptions } from '../sessions/sticky-sessions.ts'
import type { WorkerCounters } from '../worker-counters.ts'
import type { NoteRing } from './note-ring.ts'

export class NotingPrefixTable extends PrefixTable {
  private readonly ring: NoteRing
  /** What the current pick adds. */
  private readonly lows = new Int32Array(MAX_PREFIXES)
  private readonly highs = new Int32Array(MAX_PREFIXES)
  private readonly spans = new Int32Array(MAX_PREFIXES)
  private added = 0

  constructor(
    shared: ConstructorParameters<typeof PrefixTable>[0],
    maxBytes: number,
    counters: WorkerCounters,
    ring: NoteRing,
  ) {
    super(shared, maxBytes, counters)
    this.ring = ring
  }

  override insert(count: number, name: number): void {
    this.added = 0
    super.insert(count, name)
    const { added, ring } = this
    if (added === 0) return
    const position = ring.reserve(added)
    for (let i = 0; i < added; i++) ring.put(position + i, this.lows[i], this.highs[i], this.spans[i], name)
  }

  protected override replace(low: number, high: number, stamp: number, span: number, name: number): void {
    super.replace(low, high, stamp, span, name)
    this.add(low, high, span)
  }

  /** A worker that replaces another is not noted: the prefix has four workers everywhere. */
  protected override addHolder(entry: number, stamp: number, name: number): number {
    const span = super.addHolder(entry, stamp, name)
    if (span > 0 && !this.wasFull) this.add(this.low(entry), this.high(entry), span)
    return span
  }

  private add(low: number, high: number, span: number): void {
    const at = this.added++
    this.lows[at] = low
    this.highs[at] = high
    this.spans[at] = span
  }
}

export class NotingSessions extends StickySessions {
  private readonly ring: NoteRing

  constructor(options: StickySessionsOptions, ring: NoteRing) {
    super(options)
    this.ring = ring
  }

  /** The value of the note is 1 for the first worker of a session, else 0. */
  override assign(low: number, high: number, name: number): void {
    super.assign(low, high, name)
    const isFirst = this.second(this.find(low, high)) === 0
    this.ring.put(this.ring.reserve(1), low, high, isFirst ? 1 : 0, name)
  }
}
