/** Log lines of work that is repeated: the first of consecutive failures, and the success after them. */
import { type Logger, messageOf } from '#kernel'

export class FailureLog {
  readonly #log: Pick<Logger, 'info' | 'warn'>
  readonly #what: string
  #isFailing = false

  /** @param what message of a failure, such as `usage could not be stored` */
  constructor(log: Pick<Logger, 'info' | 'warn'>, what: string) {
    this.#log = log
    this.#what = what
  }

  failed(error: unknown): void {
    if (this.#isFailing) return
    this.#isFailing = true
    this.#log.warn({ reason: messageOf(error) }, this.#what)
  }

  succeeded(): void {
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#log.info({}, `recovered: ${this.#what}`)
  }
}
