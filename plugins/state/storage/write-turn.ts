/**
 * Whose turn it is to write: one thread of the process at a time checks conditions and writes, so that nothing changes
 * between the two. Turns go by tickets, in shared memory; one whose thread has died is passed over.
 */

/** Cells of the shared memory. */
const NEXT_TICKET = 0
const SERVED_TICKET = 1
const RENEWED_AT = 2
export const TURN_CELLS = 3

/** A turn that was not renewed for so long belongs to a thread that is gone or hangs. */
const LEASE_MS = 2_000
const RENEW_MS = 500
/** Asked again at least so often, since nobody wakes those who wait for a dead thread. */
const WAIT_MS = 100

export class WriteTurn {
  readonly #cells: Int32Array
  #ticket = 0
  #renewal: NodeJS.Timeout | null = null

  /** @param cells TURN_CELLS cells that all threads share */
  constructor(cells: Int32Array) {
    this.#cells = cells
  }

  /** False when this thread hung so long that its turn went to another. */
  get isMine(): boolean {
    return Atomics.load(this.#cells, SERVED_TICKET) === this.#ticket
  }

  async take(): Promise<void> {
    this.#ticket = Atomics.add(this.#cells, NEXT_TICKET, 1)
    for (;;) {
      const served = Atomics.load(this.#cells, SERVED_TICKET)
      // Passed over while it waited for its own loop: a new ticket.
      if (((this.#ticket - served) | 0) < 0) this.#ticket = Atomics.add(this.#cells, NEXT_TICKET, 1)
      if (served === this.#ticket) break
      if (this.#isOver()) this.#passOn(served)
      else await this.#change(served)
    }
    this.#renew()
    this.#renewal = setInterval(() => this.#renew(), RENEW_MS)
  }

  give(): void {
    if (this.#renewal !== null) clearInterval(this.#renewal)
    this.#renewal = null
    this.#passOn(this.#ticket)
  }

  #passOn(served: number): void {
    // First, so that whoever comes next has its full time.
    this.#renewFor(served)
    const next = (served + 1) | 0
    if (Atomics.compareExchange(this.#cells, SERVED_TICKET, served, next) === served) {
      Atomics.notify(this.#cells, SERVED_TICKET)
    }
  }

  /** Resolves when another ticket is served, or after a while. The timer also keeps the thread alive, a wait does not. */
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

  #isOver(): boolean {
    return ((nowMs() - Atomics.load(this.#cells, RENEWED_AT)) | 0) > LEASE_MS
  }

  #renew(): void {
    this.#renewFor(this.#ticket)
  }

  #renewFor(ticket: number): void {
    if (Atomics.load(this.#cells, SERVED_TICKET) === ticket) Atomics.store(this.#cells, RENEWED_AT, nowMs())
  }
}

/** The same clock on every thread, in 32 bits: only differences mean something. */
function nowMs(): number {
  return Math.trunc(performance.timeOrigin + performance.now()) | 0
}
