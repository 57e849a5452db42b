/**
 * Notes of the data threads for other gateways, in memory that all threads share: data threads write, control reads. New
 * notes overwrite those that control has not read in time.
 * @hot
 *
 * ```
 * header | note: low and high lane of the hash, value, name of the worker | …
 * ```
 * Only the position is atomic. A note that control reads while it is written may be lost, or name a less suitable worker.
 */
import type { PolicyParts } from '#kernel'

/** A power of two: more than a second of notes at the rate that one message per tick can carry. */
export const RING_NOTES = 16_384
const HEADER_CELLS = 16
const HEAD = 0
const NOTE_CELLS = 4
const HIGH = 1
const VALUE = 2
const NAME = 3

/** @param name of the worker, see `WorkerCounters.nameOf` */
export type TakeNote = (low: number, high: number, value: number, name: number) => void

export class NoteRing {
  private readonly cells: Int32Array
  /** Of the next note that control reads. */
  private tail = 0

  /** @param block name of the shared block */
  constructor(shared: PolicyParts['shared'], block: string) {
    const cells = HEADER_CELLS + RING_NOTES * NOTE_CELLS
    this.cells = new Int32Array(shared(block, cells * Int32Array.BYTES_PER_ELEMENT))
  }

  /** @returns the position of the first of `count` notes, for `put` */
  reserve(count: number): number {
    return Atomics.add(this.cells, HEAD, count)
  }

  put(position: number, low: number, high: number, value: number, name: number): void {
    const { cells } = this
    const at = HEADER_CELLS + (position & (RING_NOTES - 1)) * NOTE_CELLS
    cells[at] = low
    cells[at + HIGH] = high
    cells[at + VALUE] = value
    cells[at + NAME] = name
  }

  /**
   * Control only: takes the oldest notes.
   * @param most notes to take; the others stay
   * @returns notes that were overwritten before they were read
   */
  drain(most: number, take: TakeNote): number {
    const { cells } = this
    const written = (Atomics.load(cells, HEAD) - this.tail) | 0
    const lost = Math.max(0, written - RING_NOTES)
    this.tail = (this.tail + lost) | 0
    for (let left = Math.min(written - lost, most); left > 0; left--) {
      const at = HEADER_CELLS + (this.tail & (RING_NOTES - 1)) * NOTE_CELLS
      this.tail = (this.tail + 1) | 0
      const name = cells[at + NAME]
      cells[at + NAME] = 0
      if (name !== 0) take(cells[at], cells[at + HIGH], cells[at + VALUE], name)
    }
    return lost
  }
}

/** Null for what is not shared. */
export interface NoteRings {
  readonly prefixes: NoteRing | null
  readonly sessions: NoteRing | null
}
