/**
 * Messages of the channels `prefixes` and `sessions`: notes and the workers that they refer to.
 *
 * ```
 * version, number of notes, number of workers | note: low and high lane of the hash, value and worker | … | worker hash | …
 * ```
 * All of it is 32-bit words, little-endian as on every platform of the gateway. A note's last word has its value in the high
 * and the number of its worker in the low 16 bits; a worker hash has two words, its low 32 bits first.
 */

const VERSION = 1
const HEADER_WORDS = 3
const NOTE_WORDS = 3
const WORKER_WORDS = 2
const MAX_BYTES = 64 * 1024
const MAX_WORDS = MAX_BYTES / 4
const MAX_VALUE = 0xffff

/** @param worker number of the worker in the batch */
export type TakeBatchNote = (low: number, high: number, value: number, worker: number) => void

/** Collects notes into messages of at most 64 KiB. */
export class NoteBatch {
  readonly #words = new Int32Array(MAX_WORDS)
  readonly #send: (message: Buffer) => void
  /** Worker hash → number. */
  readonly #workers = new Map<number, number>()
  #notes = 0

  /** @param send takes each message; it is not used again */
  constructor(send: (message: Buffer) => void) {
    this.#send = send
  }

  /** @param value 0 to 65,535; a larger one is reduced */
  add(low: number, high: number, value: number, worker: number): void {
    const used = HEADER_WORDS + (this.#notes + 1) * NOTE_WORDS + (this.#workers.size + 1) * WORKER_WORDS
    if (used > MAX_WORDS) this.flush()
    let number = this.#workers.get(worker)
    if (number === undefined) {
      number = this.#workers.size
      this.#workers.set(worker, number)
    }
    const at = HEADER_WORDS + this.#notes++ * NOTE_WORDS
    this.#words[at] = low
    this.#words[at + 1] = high
    this.#words[at + 2] = (Math.min(value, MAX_VALUE) << 16) | number
  }

  /** Sends what was collected. */
  flush(): void {
    if (this.#notes === 0) return
    this.#words[0] = VERSION
    this.#words[1] = this.#notes
    this.#words[2] = this.#workers.size
    let at = HEADER_WORDS + this.#notes * NOTE_WORDS
    for (const worker of this.#workers.keys()) {
      this.#words[at++] = worker
      this.#words[at++] = Math.floor(worker / 2 ** 32)
    }
    this.#send(Buffer.from(new Uint8Array(this.#words.buffer, 0, at * 4)))
    this.#notes = 0
    this.#workers.clear()
  }
}

/** Reads messages of other gateways, which are untrusted. */
export class NoteBatchReader {
  readonly #words = new Int32Array(MAX_WORDS)
  readonly #bytes = new Uint8Array(this.#words.buffer)
  #notes = 0

  /** @returns the hashes of the workers; null for a message of another version or of wrong lengths */
  open(message: Buffer): number[] | null {
    const words = message.length / 4
    if (!Number.isInteger(words) || words < HEADER_WORDS || words > MAX_WORDS) return null
    // The message may begin at any address.
    this.#bytes.set(message)
    const [version, notes, workers] = this.#words
    if (version !== VERSION || notes < 0 || notes > MAX_WORDS || workers < 0 || workers > MAX_WORDS)
      return null
    const workersAt = HEADER_WORDS + notes * NOTE_WORDS
    if (workersAt + workers * WORKER_WORDS !== words) return null
    this.#notes = notes
    return Array.from({ length: workers }, (_, i) => {
      const at = workersAt + i * WORKER_WORDS
      return this.#words[at + 1] * 2 ** 32 + (this.#words[at] >>> 0)
    })
  }

  get count(): number {
    return this.#notes
  }

  /** Passes the first notes of the opened message. */
  read(most: number, take: TakeBatchNote): void {
    const words = this.#words
    const end = HEADER_WORDS + Math.min(most, this.#notes) * NOTE_WORDS
    for (let at = HEADER_WORDS; at < end; at += NOTE_WORDS) {
      const last = words[at + 2]
      take(words[at], words[at + 1], last >>> 16, last & 0xffff)
    }
  }
}
