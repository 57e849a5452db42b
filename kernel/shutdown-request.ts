/** State of a shutdown request, by a signal or by a plugin. */
export class ShutdownRequest {
  readonly #requested = Promise.withResolvers<number>()
  readonly #hurried = Promise.withResolvers<void>()
  #isRequested = false

  /** Resolves with the settle time in milliseconds. */
  get requested(): Promise<number> {
    return this.#requested.promise
  }

  /** Resolves when a second signal ends the drain. */
  get hurried(): Promise<void> {
    return this.#hurried.promise
  }

  /** The first call requests the shutdown, the second ends the drain. */
  demand(settleMs: number): void {
    if (this.#isRequested) this.#hurried.resolve()
    this.request(settleMs)
  }

  /** Later calls have no effect. @returns true for the first call */
  request(settleMs: number): boolean {
    const isFirst = !this.#isRequested
    this.#isRequested = true
    this.#requested.resolve(settleMs)
    return isFirst
  }
}
