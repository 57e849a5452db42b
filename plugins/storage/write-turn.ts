/**
 * Whose turn it is to write: one thread of the process at a time checks conditions and writes, so that nothing changes
 * between the two. Lives in shared memory; a thread that dies during its turn does not stop the others.
 */

/** Cells of the shared memory. */
const OWNER = 0
const RENEWED_AT = 1
export const TURN_CELLS = 2

/** A turn that was not renewed for so long belongs to a thread that is gone or hangs. */
const LEASE_MS = 5_000
const RENEW_MS = 1_000
/** Asked again at least so often, since nobody wakes those who wait for a dead thread. */
const WAIT_MS = 50

export class WriteTurn {
  readonly #cells: Int32Array
  readonly #self: number
  #renewal: NodeJS.Timeout | null = null

  /** @param threadIndex this thread's number, other than that of every other thread that shares the cells */
  constructor(cells: Int32Array, threadIndex: number) {
    this.#cells = cells
    this.#self = threadIndex + 1
    // What a thread of this number held before it died is free again.
    this.#release()
  }

  async take(): Promise<void> {
    while (!this.#tryTake()) {
      const holder = Atomics.load(this.#cells, OWNER)
      if (holder === 0) continue
      const { value } = Atomics.waitAsync(this.#cells, OWNER, holder, WAIT_MS)
      await value
    }
    this.#renew()
    this.#renewal = setInterval(() => this.#renew(), RENEW_MS)
  }

  give(): void {
    if (this.#renewal !== null) clearInterval(this.#renewal)
    this.#renewal = null
    this.#release()
  }

  #tryTake(): boolean {
    const holder = Atomics.compareExchange(this.#cells, OWNER, 0, this.#self)
    if (holder === 0) return true
    const isOver = ((nowMs() - Atomics.load(this.#cells, RENEWED_AT)) | 0) > LEASE_MS
    return isOver && Atomics.compareExchange(this.#cells, OWNER, holder, this.#self) === holder
  }

  #release(): void {
    if (Atomics.compareExchange(this.#cells, OWNER, this.#self, 0) === this.#self) {
      Atomics.notify(this.#cells, OWNER, 1)
    }
  }

  #renew(): void {
    if (Atomics.load(this.#cells, OWNER) === this.#self) Atomics.store(this.#cells, RENEWED_AT, nowMs())
  }
}

/** The same clock on every thread, in 32 bits: only differences mean something. */
function nowMs(): number {
  return Math.trunc(performance.timeOrigin + performance.now()) | 0
}
