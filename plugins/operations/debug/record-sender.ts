/** Sends records to control in batches, so that a request costs this thread no message of its own. */
import type { Logger } from '#kernel'
import type { RequestView } from './wire.ts'

/** Longest wait of a record, milliseconds. */
const FLUSH_MS = 50
/** Records that wait at most; control is out of breath when more do, and the newest are dropped. */
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
    if (this.#isScheduled) return
    this.#isScheduled = true
    setTimeout(() => void this.#flush(), FLUSH_MS).unref()
  }

  async #flush(): Promise<void> {
    const views = this.#waiting
    this.#waiting = []
    try {
      await this.#send(views)
    } catch (err) {
      this.#log.debug({ err }, 'records of past requests were not taken')
    }
    if (this.#dropped > 0)
      this.#log.warn({ dropped: this.#dropped }, 'records of past requests were dropped: too many at once')
    this.#dropped = 0
    this.#isScheduled = this.#waiting.length > 0
    if (this.#isScheduled) setTimeout(() => void this.#flush(), FLUSH_MS).unref()
  }
}
