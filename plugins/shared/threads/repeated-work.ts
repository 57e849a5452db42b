/** Repeats asynchronous work, one run at a time, with a pause after each run. */
export class RepeatedWork {
  readonly #work: () => Promise<number | null>
  readonly #delayMs: number
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> = Promise.resolve()
  #isStarted = false
  #isStopped = false

  /**
   * @param work never rejects; returns the pause until the next run in milliseconds, or null to end
   * @param delayMs of the first run
   */
  constructor(work: () => Promise<number | null>, delayMs = 0) {
    this.#work = work
    this.#delayMs = delayMs
  }

  /** Resolves at the end of the first run, if it is not delayed. */
  async start(): Promise<void> {
    if (this.#isStarted || this.#isStopped) return
    this.#isStarted = true
    if (this.#delayMs > 0) this.#schedule(this.#delayMs)
    else await this.#run()
  }

  /** Resolves when the present run has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#running
  }

  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => void this.#run(), delayMs).unref()
  }

  #run(): Promise<void> {
    this.#running = this.#work().then((pauseMs) => {
      if (pauseMs !== null && !this.#isStopped) this.#schedule(pauseMs)
    })
    return this.#running
  }
}
