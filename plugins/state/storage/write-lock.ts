/**
 * Lock over all threads of the process for conditional writes, so that nothing changes between check and write. A ticket
 * lock in shared memory; the ticket of a dead thread expires.
 */

/** Cells of the shared memory. */
const NEXT_TICKET = 0
const SERVED_TICKET = 1
const RENEWED_AT = 2
export const LOCK_CELLS = 3

/** A lock that was not renewed for this long belongs to a thread that died or hangs. Milliseconds. */
const LEASE_MS = 2_000
const RENEW_MS = 500
/** Polling interval, because a dead thread does not wake waiting threads. Milliseconds. */
const WAIT_MS = 100

export class WriteLock {
  readonly #cells: Int32Array
  #ticket = 0
  #renewal: NodeJS.Timeout | null = null

  /** @param cells LOCK_CELLS cells that all threads share */
  constructor(cells: Int32Array) {
    this.#cells = cells
  }

  /** False if this thread hung so long that its lock expired. */
  get isHeld(): boolean {
    return Atomics.load(this.#cells, SERVED_TICKET) === this.#ticket
  }

  async acquire(): Promise<void> {
    this.#ticket = Atomics.add(this.#cells, NEXT_TICKET, 1)
    for (;;) {
      const served = Atomics.load(this.#cells, SERVED_TICKET)
      // The ticket expired while this thread was blocked: take a new one.
      if (((this.#ticket - served) | 0) < 0) this.#ticket = Atomics.add(this.#cells, NEXT_TICKET, 1)
      if (served === this.#ticket) break
      if (this.#isExpired()) this.#passOn(served)
      else await this.#change(served)
    }
    this.#renew()
    this.#renewal = setInterval(() => this.#renew(), RENEW_MS)
  }

  release(): void {
    if (this.#renewal !== null) clearInterval(this.#renewal)
    this.#renewal = null
    this.#passOn(this.#ticket)
  }

  #passOn(served: number): void {
    // Renewed first, so that the next holder has the full lease.
    this.#renewFor(served)
    const next = (served + 1) | 0
    if (Atomics.compareExchange(this.#cells, SERVED_TICKET, served, next) === served) {
      Atomics.notify(this.#cells, SERVED_TICKET)
    }
  }

  /** Resolves when another ticket is served, or after WAIT_MS. The timer also keeps the event loop alive. */
  #change(served: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, WAIT_MS)
      const { async: isWaiting, value } = Atomics.waitAsync(this.#cells, SERVED_TICKET, served)
      const onChange = () => {
        clearTimeout(timer)
        resolve()
      }
      if (isWaiting) value.then(onChange, onChange)
      else onChange()
    })
  }

  #isExpired(): boolean {
    return ((sharedNowMs() - Atomics.load(this.#cells, RENEWED_AT)) | 0) > LEASE_MS
  }

  #renew(): void {
    this.#renewFor(this.#ticket)
  }

  #renewFor(ticket: number): void {
    if (Atomics.load(this.#cells, SERVED_TICKET) === ticket)
      Atomics.store(this.#cells, RENEWED_AT, sharedNowMs())
  }
}

/** Clock that all threads share, in wrapping 32-bit milliseconds. */
export function sharedNowMs(): number {
  return Math.trunc(performance.timeOrigin + performance.now()) | 0
}
