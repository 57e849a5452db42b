/** Periodic background work in batches, such as deleting expired records; an error does not stop it. */
import type { Logger } from '#kernel'

/** Maximum records per batch. */
const SLICE = 256
/** Pause between two batches, so that other work can run. */
const PAUSE_MS = 10

export class PeriodicBatches {
  readonly #act: (limit: number) => Promise<number>
  readonly #intervalMs: number
  readonly #log: Logger
  readonly #what: string
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  /**
   * @param act processes up to `limit` records and returns their number; fewer means that none is left
   * @param intervalMs pause when none is left
   * @param what log message of a failure, such as `expired records could not be deleted`
   */
  constructor(act: (limit: number) => Promise<number>, intervalMs: number, log: Logger, what: string) {
    this.#act = act
    this.#intervalMs = intervalMs
    this.#log = log
    this.#what = what
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
      count = await this.#act(SLICE)
    } catch (error) {
      this.#log.warn({ err: error }, this.#what)
    }
    if (!this.#isStopped) this.#schedule(count < SLICE ? this.#intervalMs : PAUSE_MS)
  }
}
