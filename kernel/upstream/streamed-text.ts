/** Keeps the beginning of a stream, within a limit for all streams of the thread, and reads the generated text at its end. */

/** Bytes of a stream that are kept; the tokens of a longer one are extrapolated. */
const MAX_BYTES = 262_144
/** Kept of every stream. */
const FIRST_BYTES = 4_096
/** Beyond this total of all streams of the thread, a stream keeps what it has. */
const MAX_HELD_BYTES = 67_108_864
let heldBytes = 0

/** @hot */
export class StreamedText {
  readonly #read: (kept: Buffer) => string
  #kept = Buffer.allocUnsafe(FIRST_BYTES)
  #keptBytes = 0
  #totalBytes = 0
  /** Bytes of this stream in `heldBytes`. */
  #heldBytes = 0
  #isFull = false

  /** @param read reads the text from what was kept */
  constructor(read: (kept: Buffer) => string) {
    this.#read = read
  }

  push(chunk: Buffer): void {
    this.#totalBytes += chunk.length
    if (this.#isFull) return
    const wanted = Math.min(chunk.length, MAX_BYTES - this.#keptBytes)
    if (this.#keptBytes + wanted > this.#kept.length) this.#grow(this.#keptBytes + wanted)
    const bytes = Math.min(wanted, this.#kept.length - this.#keptBytes)
    chunk.copy(this.#kept, this.#keptBytes, 0, bytes)
    this.#keptBytes += bytes
  }

  /** Appends text in UTF-8. */
  write(text: string): void {
    const bytes = Buffer.byteLength(text)
    this.#totalBytes += bytes
    if (this.#isFull) return
    const wanted = this.#keptBytes + bytes
    if (wanted > this.#kept.length) this.#grow(wanted)
    this.#keptBytes += this.#kept.write(text, this.#keptBytes)
    // Nothing may follow a text that was cut.
    if (wanted > this.#keptBytes) this.#isFull = true
  }

  /** Does nothing if the thread holds too much. */
  #grow(needed: number): void {
    const size = Math.min(MAX_BYTES, Math.max(needed, 2 * this.#kept.length))
    if (heldBytes - this.#heldBytes + size > MAX_HELD_BYTES) {
      this.#isFull = true
      return
    }
    heldBytes += size - this.#heldBytes
    this.#heldBytes = size
    const grown = Buffer.allocUnsafe(size)
    this.#kept.copy(grown, 0, 0, this.#keptBytes)
    this.#kept = grown
  }

  /** Nothing more is pushed or read. */
  release(): void {
    heldBytes -= this.#heldBytes
    this.#heldBytes = 0
    this.#isFull = true
  }

  /** Bytes of the stream per kept byte; 1 for a stream that was kept completely. */
  get scale(): number {
    return this.#totalBytes / this.#keptBytes
  }

  text(): string {
    return this.#read(this.#kept.subarray(0, this.#keptBytes))
  }
}
