/** Publishes a state that may change faster than all threads can acknowledge it: bursts of changes share one publish. */

/** The next publish waits this many times as long as the last one took. */
const REST_FACTOR = 3
const MAX_REST_MS = 50
/** Resolution of timers; shorter waits are skipped. */
const MIN_REST_MS = 1

export class Publisher {
  readonly #publish: () => Promise<void>
  #current: Promise<void> | null = null
  #next: Promise<void> | null = null
  #restsUntilMs = 0

  /** @param publish sends the current state; resolves when every thread has it */
  constructor(publish: () => Promise<void>) {
    this.#publish = publish
  }

  /** Resolves when every thread has a state at least as new as the present one. */
  publish(): Promise<void> {
    if (this.#next !== null) return this.#next
    if (this.#current === null && performance.now() >= this.#restsUntilMs) return this.#start()
    // Calls during a publish or the wait after it share the next publish.
    this.#next = this.#startLater(this.#current)
    return this.#next
  }

  async #startLater(current: Promise<void> | null): Promise<void> {
    await current?.catch(() => {})
    const restMs = this.#restsUntilMs - performance.now()
    if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs))
    this.#next = null
    await this.#start()
  }

  async #start(): Promise<void> {
    const startedAtMs = performance.now()
    const run = this.#publish()
    this.#current = run
    try {
      await run
    } finally {
      this.#current = null
      const nowMs = performance.now()
      const restMs = Math.min(MAX_REST_MS, REST_FACTOR * (nowMs - startedAtMs))
      if (restMs >= MIN_REST_MS) this.#restsUntilMs = nowMs + restMs
    }
  }
}
