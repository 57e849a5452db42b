/** Runs the sweep of expired records in the background: short slices with pauses, whatever happens to one of them. */
import type { Logger } from '#kernel'

/** Records of one slice. */
const SLICE = 256
/** Between two slices of one sweep, for everybody else. */
const PAUSE_MS = 10

export class Sweeper {
  readonly #sweep: (limit: number) => Promise<number>
  readonly #intervalMs: number
  readonly #log: Logger
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  /** @param sweep removes up to that many and says how many it did */
  constructor(sweep: (limit: number) => Promise<number>, intervalMs: number, log: Logger) {
    this.#sweep = sweep
    this.#intervalMs = intervalMs
    this.#log = log
  }

  start(): void {
    if (this.#timer !== null || this.#isStopped) return
    this.#schedule(this.#intervalMs)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    await this.#running
  }

  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => {
      this.#running = this.#slice()
    }, delayMs)
    this.#timer.unref()
  }

  async #slice(): Promise<void> {
    let count = 0
    try {
      count = await this.#sweep(SLICE)
    } catch (error) {
      this.#log.warn({ err: error }, 'expired records could not be removed; tried again later')
    }
    if (!this.#isStopped) this.#schedule(count < SLICE ? this.#intervalMs : PAUSE_MS)
  }
}
