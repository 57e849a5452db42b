/** A lock in shared memory whose holder may be terminated at any time. Held for microseconds. */
import { sharedClockMs } from '../threads/guest-task.ts'

/** Words: owner number of the holder + 1 (0: free), and the time of acquisition. */
const HOLDER = 0
const SINCE = 1
export const LOCK_BYTES = 8

/** Longest wait for the lock, milliseconds: on pool threads, and on threads that serve requests. */
export const POOL_WAIT_MS = 500
export const SHORT_WAIT_MS = 50
/** A lock that is held longer is taken over, milliseconds. */
const ABANDONED_MS = 5_000

export class SharedLock {
  readonly #words: Int32Array
  readonly #me: number
  readonly #waitMs: number
  /** Repairs the guarded data after the holder was terminated. */
  readonly #repair: () => void

  /**
   * @param owner unique number of this thread
   * @param waitMs longest wait; the holder may be descheduled on a busy machine
   */
  constructor(memory: SharedArrayBuffer, owner: number, waitMs: number, repair: () => void) {
    this.#waitMs = waitMs
    this.#words = new Int32Array(memory, 0, LOCK_BYTES / 4)
    this.#me = owner + 1
    this.#repair = repair
  }

  /** @param otherwise result if the lock is not acquired in time */
  run<T>(otherwise: T, act: () => T): T {
    if (!this.#acquire()) return otherwise
    try {
      return act()
    } finally {
      this.#release()
    }
  }

  /** Releases the lock of a terminated thread and repairs the guarded data. */
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
