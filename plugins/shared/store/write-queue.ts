/**
 * The pending writes of one thread, bounded in number and bytes. Writes that arrive while a batch is written form the next
 * batch, so that many writes share one commit.
 */
import { storageOverloaded } from './store-operations.ts'

/** Maximum bytes and writes of a batch. */
const BATCH_BYTES = 8 * 1024 * 1024
const BATCH_WRITES = 1_000

interface Waiting<Write, Result> extends PromiseWithResolvers<Result> {
  readonly write: Write
}

export class WriteQueue<Write extends { readonly bytes: number }, Result> {
  readonly #commit: (writes: readonly Write[]) => Promise<readonly Result[]>
  readonly #maxBytes: number
  readonly #maxWrites: number
  #waiting: Waiting<Write, Result>[] = []
  /** Bytes of the writes that have not ended. */
  #bytes = 0
  #running: Promise<void> | null = null

  /**
   * @param commit writes a batch and returns the result of each write; its error is that of all of them
   * @param maxBytes of pending writes; one write may exceed it
   */
  constructor(
    commit: (writes: readonly Write[]) => Promise<readonly Result[]>,
    maxBytes: number,
    maxWrites = Number.POSITIVE_INFINITY,
  ) {
    this.#commit = commit
    this.#maxBytes = maxBytes
    this.#maxWrites = maxWrites
  }

  /** @throws storage_overloaded, or an error of the commit */
  add(write: Write): Promise<Result> {
    if (this.#isFull(write)) return Promise.reject(storageOverloaded())
    const waiting = { write, ...Promise.withResolvers<Result>() }
    this.#waiting.push(waiting)
    this.#bytes += write.bytes
    // Collects writes of other requests in this turn of the event loop.
    this.#running ??= new Promise((started) => setImmediate(started)).then(() => this.#run())
    return waiting.promise
  }

  /** Commits a write on its own, without waiting for others. @throws as `add` */
  async addAlone(write: Write): Promise<Result> {
    if (this.#isFull(write)) throw storageOverloaded()
    this.#bytes += write.bytes
    try {
      return (await this.#commit([write]))[0]
    } finally {
      this.#bytes -= write.bytes
    }
  }

  /** Resolves when no batch is pending. */
  async idle(): Promise<void> {
    await this.#running
  }

  #isFull({ bytes }: Write): boolean {
    return (
      this.#waiting.length >= this.#maxWrites || (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes)
    )
  }

  /** Never rejects: errors reject the writes of the batch. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      let bytes = 0
      let count = 0
      while (count < this.#waiting.length && count < BATCH_WRITES && (count === 0 || bytes < BATCH_BYTES))
        bytes += this.#waiting[count++].write.bytes
      const batch = this.#waiting.splice(0, count)
      try {
        const results = await this.#commit(batch.map(({ write }) => write))
        for (const [index, { resolve }] of batch.entries()) resolve(results[index])
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
      this.#bytes -= bytes
    }
    this.#running = null
  }
}
