/** How long to wait before a thread that died is replaced. */

const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 5_000
/** A thread that lived this long was healthy: its death starts no series. */
const STABLE_MS = 5_000

/** One series of early deaths: 100 ms, doubling to 5 s; a long life ends it. */
export class RestartBackOff {
  #nextMs = FIRST_DELAY_MS

  /**
   * @param livedMs from the start of the thread to its end
   * @returns milliseconds to wait; 0 after a long life
   */
  delayMs(livedMs: number): number {
    if (livedMs >= STABLE_MS) {
      this.#nextMs = FIRST_DELAY_MS
      return 0
    }
    const delay = this.#nextMs
    this.#nextMs = Math.min(delay * 2, MAX_DELAY_MS)
    return delay
  }
}
