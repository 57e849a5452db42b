/** Sends records to control in batches instead of one message per request. */
import type { Logger } from '#kernel'
import type { RequestView } from './wire.ts'

/** Maximum delay of a record, in milliseconds. */
const FLUSH_MS = 50
/** Maximum pending records; if control falls behind, the newest are dropped. */
const MAX_WAITING = 5_000

export class RecordSender {
  #waiting: RequestView[] = []
  #isScheduled = false
  #dropped = 0
  readonly #send: (views: readonly RequestView[]) => Promise<void>
  readonly #log: Logger

  constructor(send: (views: readonly RequestView[]) => Promise<void>, log: Logger) {
    this.#send = send
    this.#log = log
  }

  add(view: RequestView): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#dropped++
      return
    }
    this.#waiting.push(view)
    if (!this.#isScheduled) this.#schedule()
  }

  #schedule(): void {
    this.#isScheduled = true
    setTimeout(() => void this.#flush(), FLUSH_MS).unref()
  }

  async #flush(): Promise<void> {
    const views = this.#waiting
    this.#waiting = []
    try {
      await this.#send(views)
    } catch (err) {
      this.#log.debug({ err }, 'debug records could not be sent')
    }
    if (this.#dropped > 0)
      this.#log.warn({ dropped: this.#dropped }, 'debug records dropped: too many pending')
    this.#dropped = 0
    this.#isScheduled = false
    if (this.#waiting.length > 0) this.#schedule()
  }
}
