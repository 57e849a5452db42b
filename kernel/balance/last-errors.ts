/**
 * The last error of each worker in memory shared by all threads, so that control can show it.
 *
 * A row is a version, a time, a length and the text. The version is odd while a thread writes: another writer then drops its
 * text, and a reader tries again.
 */
import {
  type CounterLayout,
  ERROR_HEADER_CELLS,
  ERROR_ROW_CELLS,
  ERROR_TEXT_BYTES,
} from './counter-layout.ts'

const VERSION = 0
const AT_SEC = 1
const BYTES = 2
const CELL_BYTES = Int32Array.BYTES_PER_ELEMENT
/** Reads until a writer that died in between is given up. */
const MAX_READS = 100

export class LastErrors {
  readonly #cells: Int32Array
  readonly #bytes: Buffer
  readonly #startAt: number

  constructor({ cells, errorsAt }: CounterLayout) {
    this.#cells = cells
    this.#bytes = Buffer.from(cells.buffer)
    this.#startAt = errorsAt
  }

  /** @param text the first 256 bytes are kept */
  note(slot: number, text: string, nowMs: number): void {
    const at = this.#startAt + slot * ERROR_ROW_CELLS
    const version = Atomics.load(this.#cells, at + VERSION)
    if (version % 2 !== 0) return
    if (Atomics.compareExchange(this.#cells, at + VERSION, version, version + 1) !== version) return
    this.#cells[at + AT_SEC] = Math.floor(nowMs / 1000)
    this.#cells[at + BYTES] = this.#bytes.write(
      text,
      (at + ERROR_HEADER_CELLS) * CELL_BYTES,
      ERROR_TEXT_BYTES,
    )
    Atomics.store(this.#cells, at + VERSION, (version + 2) | 0)
  }

  of(slot: number): { text: string; atMs: number } | null {
    const at = this.#startAt + slot * ERROR_ROW_CELLS
    for (let reads = 0; reads < MAX_READS; reads++) {
      const version = Atomics.load(this.#cells, at + VERSION)
      if (version % 2 !== 0) continue
      const atMs = (this.#cells[at + AT_SEC] >>> 0) * 1000
      const textAt = (at + ERROR_HEADER_CELLS) * CELL_BYTES
      const text = this.#bytes.toString('utf8', textAt, textAt + this.#cells[at + BYTES])
      if (Atomics.load(this.#cells, at + VERSION) !== version) continue
      return atMs === 0 ? null : { text, atMs }
    }
    return null
  }

  /** Control only: forgets the previous worker of the row, and a writer that died. */
  reset(slot: number): void {
    const at = this.#startAt + slot * ERROR_ROW_CELLS
    this.#cells[at + AT_SEC] = 0
    Atomics.store(this.#cells, at + VERSION, 0)
  }
}
