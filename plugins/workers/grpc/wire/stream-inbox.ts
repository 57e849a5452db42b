/** Buffers the data of a paused stream and releases its flow-control window. @hot */
import type { DataConsumer } from './data-frames.ts'

const FIRST_BYTES = 4_096

export interface InboxOwner {
  /** Receives data. */
  readBytes(bytes: Buffer): void
  /** The engine may send this many more bytes. */
  releaseWindow(bytes: number): void
  /** The engine exceeded the window. */
  onWindowExceeded(): void
}

export class StreamInbox implements DataConsumer {
  readonly #owner: InboxOwner
  readonly #windowBytes: number
  /** One buffer, so that small frames do not become many objects. */
  #held: Buffer | null = null
  #heldBytes = 0
  /** Window bytes that are buffered, and that were read but not released yet. */
  #waiting = 0
  #unreleased = 0
  #isHolding = true

  /** Buffers until `release`. @param windowBytes flow-control window of the stream */
  constructor(windowBytes: number, owner: InboxOwner) {
    this.#windowBytes = windowBytes
    this.#owner = owner
  }

  take(bytes: Buffer, windowBytes: number): void {
    if (!this.#isHolding) {
      this.#account(windowBytes)
      if (bytes.length > 0) this.#owner.readBytes(bytes)
      return
    }
    this.#waiting += windowBytes
    if (this.#waiting + this.#unreleased > this.#windowBytes) this.#owner.onWindowExceeded()
    else this.#hold(bytes)
  }

  #hold(bytes: Buffer): void {
    const wanted = this.#heldBytes + bytes.length
    if (this.#held === null || this.#held.length < wanted) {
      const grown = Buffer.allocUnsafe(Math.max(FIRST_BYTES, wanted, this.#heldBytes * 2))
      this.#held?.copy(grown, 0, 0, this.#heldBytes)
      this.#held = grown
    }
    bytes.copy(this.#held, this.#heldBytes)
    this.#heldBytes = wanted
  }

  hold(): void {
    this.#isHolding = true
  }

  /** Delivers buffered data, and further data at once. */
  release(): void {
    this.#isHolding = false
    const held = this.#held
    if (held === null) return
    const bytes = held.subarray(0, this.#heldBytes)
    this.#held = null
    this.#heldBytes = 0
    this.#account(this.#waiting)
    this.#waiting = 0
    if (bytes.length > 0) this.#owner.readBytes(bytes)
  }

  #account(bytes: number): void {
    this.#unreleased += bytes
    if (this.#unreleased * 2 < this.#windowBytes) return
    this.#owner.releaseWindow(this.#unreleased)
    this.#unreleased = 0
  }
}
