/** Sends records of a data thread to control in batches instead of one message per record. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '#kernel'
import { CoalescedWork } from './async-work.ts'

/** Maximum delay of a record, in milliseconds. */
const FLUSH_MS = 50
/** Maximum pending records; if control falls behind, the newest are dropped. */
const MAX_WAITING = 5_000

export class BatchSender<T> {
  #waiting: T[] = []
  #dropped = 0
  readonly #what: string
  readonly #send: (records: readonly T[]) => Promise<void>
  readonly #log: Logger
  readonly #sending = new CoalescedWork(() => this.#flush())

  /** @param what name of the records in log messages, such as `debug records` */
  constructor(what: string, send: (records: readonly T[]) => Promise<void>, log: Logger) {
    this.#what = what
    this.#send = send
    this.#log = log
  }

  add(record: T): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#dropped++
      return
    }
    this.#waiting.push(record)
    void this.#sending.run()
  }

  async #flush(): Promise<void> {
    await sleep(FLUSH_MS, undefined, { ref: false })
    await this.sendNow()
  }

  /** Sends what is pending before it returns; resolves when control has it. Never rejects. */
  async sendNow(): Promise<void> {
    const records = this.#waiting
    if (records.length === 0) return
    this.#waiting = []
    try {
      await this.#send(records)
    } catch (err) {
      this.#log.debug({ err }, `${this.#what} could not be sent`)
    }
    if (this.#dropped > 0)
      this.#log.warn({ dropped: this.#dropped }, `${this.#what} dropped: too many pending`)
    this.#dropped = 0
  }
}
