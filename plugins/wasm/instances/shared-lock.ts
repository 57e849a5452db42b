/** A lock in shared memory whose holder may be ended at any moment. Held for microseconds. */
import { sharedClockMs } from '../threads/guest-task.ts'

/** Words: who holds it (number + 1, 0 when free), and since when. */
const HOLDER = 0
const SINCE = 1
export const LOCK_BYTES = 8

/** How long a caller waits before it gives up, milliseconds: one whose thread serves nobody else, and any other. */
export const POOL_WAIT_MS = 500
export const SHORT_WAIT_MS = 50
/** A lock held longer is taken over: its thread ended without `releaseDead`, milliseconds. */
const ABANDONED_MS = 5_000

export class SharedLock {
  readonly #words: Int32Array
  readonly #me: number
  readonly #waitMs: number
  /** Makes what the lock guards usable again after a thread ended while it held the lock. */
  readonly #repair: () => void

  /**
   * @param owner unique number of this thread
   * @param waitMs on a machine with more to do than cores a holder may stand still for many times what it needs
   */
  constructor(memory: SharedArrayBuffer, owner: number, waitMs: number, repair: () => void) {
    this.#waitMs = waitMs
    this.#words = new Int32Array(memory, 0, LOCK_BYTES / 4)
    this.#me = owner + 1
    this.#repair = repair
  }

  /** @param otherwise what is given where the lock was not to be had */
  run<T>(otherwise: T, act: () => T): T {
    if (!this.#acquire()) return otherwise
    try {
      return act()
    } finally {
      this.#release()
    }
  }

  /** The thread with that number is gone for good: if it held the lock, what it guards is repaired. */
  releaseDead(owner: number): void {
    if (Atomics.load(this.#words, HOLDER) === owner + 1) this.#takeOver(owner + 1)
  }

  #acquire(): boolean {
    const untilMs = performance.now() + this.#waitMs
    for (;;) {
      const holder = Atomics.compareExchange(this.#words, HOLDER, 0, this.#me)
      if (holder === 0) {
        Atomics.store(this.#words, SINCE, sharedClockMs())
        return true
      }
      const leftMs = untilMs - performance.now()
      if (leftMs <= 0) {
        const heldMs = (sharedClockMs() - Atomics.load(this.#words, SINCE)) | 0
        if (heldMs > ABANDONED_MS) this.#takeOver(holder)
        return false
      }
      Atomics.wait(this.#words, HOLDER, holder, leftMs)
    }
  }

  #takeOver(holder: number): void {
    if (Atomics.compareExchange(this.#words, HOLDER, holder, this.#me) !== holder) return
    Atomics.store(this.#words, SINCE, sharedClockMs())
    this.#repair()
    this.#release()
  }

  #release(): void {
    Atomics.store(this.#words, HOLDER, 0)
    Atomics.notify(this.#words, HOLDER, 1)
  }
}
