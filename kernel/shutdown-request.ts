/** A shutdown that was asked for: by who runs the gateway, by a plugin. */
export class ShutdownRequest {
  readonly #asked = Promise.withResolvers<number>()
  readonly #hurried = Promise.withResolvers<void>()
  #isAsked = false

  /** Resolves with the settle time in milliseconds. */
  get asked(): Promise<number> {
    return this.#asked.promise
  }

  /** Resolves when somebody does not want to wait. */
  get hurried(): Promise<void> {
    return this.#hurried.promise
  }

  /** The first asks, the second hurries. */
  demand(settleMs: number): void {
    if (this.#isAsked) this.#hurried.resolve()
    this.ask(settleMs)
  }

  /** Asking again changes nothing. @returns true for the first who asks */
  ask(settleMs: number): boolean {
    const isFirst = !this.#isAsked
    this.#isAsked = true
    this.#asked.resolve(settleMs)
    return isFirst
  }
}
