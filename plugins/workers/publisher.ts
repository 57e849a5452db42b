/** Publishes the newest state of something that changes faster than all threads can acknowledge. */

export class Publisher {
  readonly #publish: () => Promise<void>
  #current: Promise<void> | null = null
  #next: Promise<void> | null = null

  /** @param publish sends the state as it is when called; resolves when everybody has it */
  constructor(publish: () => Promise<void>) {
    this.#publish = publish
  }

  /** Resolves when every thread has a state at least as new as the present one. */
  publish(): Promise<void> {
    if (this.#current === null) return this.#start()
    // Whoever comes while one publish runs shares the one after it: a thousand changes cost two tables, not a thousand.
    this.#next ??= this.#current.catch(() => {}).then(() => this.#start())
    return this.#next
  }

  #start(): Promise<void> {
    this.#next = null
    const run = this.#publish().finally(() => {
      if (this.#current === run) this.#current = null
    })
    this.#current = run
    return run
  }
}
