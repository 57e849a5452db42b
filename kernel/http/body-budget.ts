/**
 * Limits the request bodies that a thread holds at once, in total and per owner: the tenant, or the client address of callers
 * without one. Bodies are counted before they are read: by their length if it is announced, otherwise as they arrive.
 */
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
