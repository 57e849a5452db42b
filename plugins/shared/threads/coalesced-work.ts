/** Runs asynchronous work one run at a time; calls during a run share the next one. */
export class CoalescedWork {
  readonly #work: () => Promise<void>
  #running: Promise<void> | null = null
  #next: Promise<void> | null = null

  /** @param work never rejects */
  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Resolves at the end of a run that begins after this call. */
  run(): Promise<void> {
    this.#next ??= this.#start()
    return this.#next
  }

  /** Resolves when the present run has ended. */
  async idle(): Promise<void> {
    await this.#running
  }

  async #start(): Promise<void> {
    await this.#running
    this.#next = null
    this.#running = this.#work()
    await this.#running
  }
}
