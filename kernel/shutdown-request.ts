/** State of a shutdown request, by a signal or by a plugin. */
export class ShutdownRequest {
  readonly #asked = Promise.withResolvers<number>()
  readonly #hurried = Promise.withResolvers<void>()
  #isAsked = false

  /** Resolves with the settle time in milliseconds. */
  get asked(): Promise<number> {
    return this.#asked.promise
  }

  /** Resolves when a second signal ends the drain. */
  get hurried(): Promise<void> {
    return this.#hurried.promise
  }

  /** The first call requests the shutdown, the second ends the drain. */
  demand(settleMs: number): void {
    if (this.#isAsked) this.#hurried.resolve()
    this.ask(settleMs)
  }

  /** Later calls have no effect. @returns true for the first call */
  ask(settleMs: number): boolean {
    const isFirst = !this.#isAsked
    this.#isAsked = true
    this.#asked.resolve(settleMs)
    return isFirst
  }
}
