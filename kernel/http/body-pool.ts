/**
 * Reuses the memory of large request bodies: fresh memory costs page faults and garbage collections for every 100 KB
 * prompt. bench: relay-json-100k
 */

/** Smaller bodies use Node's own pool. */
export const MIN_POOLED_BYTES = 16_384
/** Larger bodies are rare and not kept. */
export const MAX_POOLED_BYTES = 1_048_576
/** Free memory kept per thread. */
const MAX_FREE_BYTES = 16 * 1_048_576

export class BodyPool {
  /** Free blocks by size class: 16 KiB, 32 KiB, … 1 MiB. */
  readonly #free: Buffer[][] = []
  #freeBytes = 0

  /** @returns a block of at least that many bytes, its content undefined; null when the size is not pooled */
  take(bytes: number): Buffer | null {
    if (bytes < MIN_POOLED_BYTES || bytes > MAX_POOLED_BYTES) return null
    const sizeClass = classOf(bytes)
    const block = this.#free[sizeClass]?.pop()
    if (block === undefined) return Buffer.allocUnsafeSlow(MIN_POOLED_BYTES << sizeClass)
    this.#freeBytes -= block.length
    return block
  }

  /** Releases a block, which must not be read any more. */
  give(block: Buffer): void {
    if (this.#freeBytes + block.length > MAX_FREE_BYTES) return
    const sizeClass = classOf(block.length)
    const list = this.#free[sizeClass]
    if (list === undefined) this.#free[sizeClass] = [block]
    else list.push(block)
    this.#freeBytes += block.length
  }
}

/** 0 for up to 16 KiB, one more for each doubling. */
function classOf(bytes: number): number {
  return 32 - Math.clz32((bytes - 1) >>> 14)
}
