/** How often a server's own event stream is opened again: a server may name the wait, and it may name none at all. */

const BURST = 5
const GAP_MS = 1_000

export class StreamPace {
  #left = BURST
  #lastMs = 0

  /** Resolves when the next stream may be opened. Rejects when the signal is aborted first. */
  async wait(signal: AbortSignal | null, now: number = Date.now()): Promise<void> {
    this.#left = Math.min(BURST, this.#left + (now - this.#lastMs) / GAP_MS) - 1
    this.#lastMs = now
    if (this.#left >= 0) return
    await new Promise<void>((resolve, reject) => {
      const giveUp = () => {
        clearTimeout(timer)
        reject(new Error('given up'))
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }, -this.#left * GAP_MS)
      signal?.addEventListener('abort', giveUp, { once: true })
    })
  }
}
