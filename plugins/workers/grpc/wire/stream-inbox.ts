/** What has come for a stream whose reader rests, and how much more may come. @hot */
import type { DataTaker } from './data-frames.ts'

const FIRST_BYTES = 4_096

export interface InboxOwner {
  /** Bytes to be read now. */
  readBytes(bytes: Buffer): void
  /** The other end may send so much more. */
  giveBack(bytes: number): void
  /** The other end sends more than it may. */
  flooded(): void
}

export class StreamInbox implements DataTaker {
  readonly #owner: InboxOwner
  readonly #windowBytes: number
  /** Small frames must not become many objects: they are gathered in one buffer. */
  #held: Buffer | null = null
  #heldBytes = 0
  /** Of the window: what waits, and what was read but not given back yet. */
  #waiting = 0
  #untold = 0
  #isHolding = true

  /** It holds until it is told to let go. @param windowBytes what the other end may send ahead */
  constructor(windowBytes: number, owner: InboxOwner) {
    this.#windowBytes = windowBytes
    this.#owner = owner
  }

  take(bytes: Buffer, windowBytes: number): void {
    if (!this.#isHolding) {
      this.#tell(windowBytes)
      if (bytes.length > 0) this.#owner.readBytes(bytes)
      return
    }
    this.#waiting += windowBytes
    if (this.#waiting + this.#untold > this.#windowBytes) this.#owner.flooded()
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

  /** Everything that waits is read, and what comes from now on at once. */
  letGo(): void {
    this.#isHolding = false
    const held = this.#held
    if (held === null) return
    const bytes = held.subarray(0, this.#heldBytes)
    this.#held = null
    this.#heldBytes = 0
    this.#tell(this.#waiting)
    this.#waiting = 0
    if (bytes.length > 0) this.#owner.readBytes(bytes)
  }

  #tell(bytes: number): void {
    this.#untold += bytes
    if (this.#untold * 2 < this.#windowBytes) return
    this.#owner.giveBack(this.#untold)
    this.#untold = 0
  }
}
