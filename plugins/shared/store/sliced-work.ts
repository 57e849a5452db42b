/** Work in the background, such as removing what has expired: short slices with pauses, whatever happens to one of them. */
import type { Logger } from '#kernel'

/** What one slice may deal with. */
const SLICE = 256
/** Between two slices, for everybody else. */
const PAUSE_MS = 10

export class SlicedWork {
  readonly #act: (limit: number) => Promise<number>
  readonly #intervalMs: number
  readonly #log: Logger
  readonly #what: string
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  /**
   * @param act deals with up to that many and says how many it did; fewer means that nothing is left for now
   * @param intervalMs pause when nothing is left
   * @param what for the log, such as `expired records could not be removed`
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
      this.#log.warn({ err: error }, `${this.#what}; tried again later`)
    }
    if (!this.#isStopped) this.#schedule(count < SLICE ? this.#intervalMs : PAUSE_MS)
  }
}
