/** Memory of request bodies: how much a thread holds at once, and the reuse of large blocks. */
import { type GatewayError, retryAfter } from '../errors/gateway-error.ts'
import { httpErrors } from './http-errors.ts'

/** Smaller bodies are not counted; the connection limit bounds them. */
export const UNCOUNTED_BYTES = 16_384
const RETRY_SOON = retryAfter(1)

export interface BodyLimits {
  /** Largest single body, bytes. The other limits are at least this. */
  readonly maxBodyBytes: number
  /** Bytes of all bodies on the thread. */
  readonly maxHeldBytes: number
  /** Bytes of the bodies of one owner on the thread. */
  readonly maxHeldBytesPerOwner: number
}

/**
 * Limits the bodies that a thread holds, in total and per owner: the tenant, or the client address of callers without one.
 * Bodies are counted before they are read: by their length if it is announced, otherwise as they arrive.
 */
export class BodyBudget {
  #held = 0
  readonly #heldByOwner = new Map<string, number>()
  readonly #max: number
  readonly #maxPerOwner: number

  constructor({ maxBodyBytes, maxHeldBytes, maxHeldBytesPerOwner }: BodyLimits) {
    this.#max = Math.max(maxBodyBytes, maxHeldBytes)
    this.#maxPerOwner = Math.max(maxBodyBytes, maxHeldBytesPerOwner)
  }

  /** @returns null if the bytes were counted; otherwise the error for the client */
  take(owner: string, bytes: number): GatewayError | null {
    const own = (this.#heldByOwner.get(owner) ?? 0) + bytes
    if (own > this.#maxPerOwner) return httpErrors.too_many_body_bytes.with(RETRY_SOON, this.#maxPerOwner)
    if (this.#held + bytes > this.#max) return httpErrors.body_memory_exhausted.with(RETRY_SOON, this.#max)
    this.#held += bytes
    this.#heldByOwner.set(owner, own)
    return null
  }

  /** Releases bytes that were taken. */
  give(owner: string, bytes: number): void {
    this.#held -= bytes
    const own = (this.#heldByOwner.get(owner) as number) - bytes
    if (own === 0) this.#heldByOwner.delete(owner)
    else this.#heldByOwner.set(owner, own)
  }
}

/** Smaller bodies use Node's own pool. */
export const MIN_POOLED_BYTES = 16_384
/** Larger bodies are rare and not kept. */
export const MAX_POOLED_BYTES = 1_048_576
/** Free memory kept per thread. */
const MAX_FREE_BYTES = 16 * 1_048_576

/** Reuses blocks: fresh memory costs page faults and garbage collections for every 100 KB prompt. bench: relay-json-100k */
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
