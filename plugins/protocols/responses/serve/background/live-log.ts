/** Writes the frames of a background response into its log, in batches, and notifies its followers. */
import type { EventLog, Logger } from '#kernel'
import { type LiveResponses, liveKey } from './topics.ts'

export class LiveLog {
  readonly #events: EventLog
  readonly #live: LiveResponses
  readonly #log: Logger
  readonly #tenant: string
  readonly #id: string
  readonly #key: string
  #waiting: string[] = []
  #firstWaiting = 0
  #writing: Promise<void> | null = null

  constructor(
    parts: { events: EventLog; live: LiveResponses; log: Logger },
    { tenant, id }: { tenant: string; id: string },
  ) {
    this.#events = parts.events
    this.#live = parts.live
    this.#log = parts.log
    this.#tenant = tenant
    this.#id = id
    this.#key = liveKey(tenant, id)
  }

  readonly take = (frame: string, number: number): void => {
    if (this.#waiting.length === 0) this.#firstWaiting = number
    this.#waiting.push(frame)
    this.#writing ??= this.#write()
  }

  /** Resolves when all frames so far are stored, or have failed. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing
  }

  /** After the last frame. */
  async end(): Promise<void> {
    await this.flush()
    this.#live.publish(this.#key, { isOver: true })
  }

  async #write(): Promise<void> {
    // Frames of one turn of the event loop are written together.
    await new Promise((resolve) => setImmediate(resolve))
    try {
      while (this.#waiting.length > 0) {
        const frames = this.#waiting
        this.#waiting = []
        await this.#events.append(this.#tenant, this.#id, this.#firstWaiting, frames)
        this.#live.publish(this.#key, { isOver: false })
      }
    } catch (err) {
      this.#waiting = []
      this.#log.warn({ err, response_id: this.#id }, 'events of background response not stored')
    } finally {
      this.#writing = null
    }
  }
}
