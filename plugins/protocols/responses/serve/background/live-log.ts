/** Writes the frames of a background response into its log, in batches, and notifies its followers. */
import { CoalescedWork } from '#shared'
import type { StoredParts } from '../parts.ts'
import { liveKey } from './signals.ts'

export class LiveLog {
  readonly #parts: StoredParts
  readonly #tenant: string
  readonly #id: string
  readonly #key: string
  #waiting: string[] = []
  #firstWaiting = 0
  readonly #writes = new CoalescedWork(() => this.#write())

  constructor(parts: StoredParts, tenant: string, id: string) {
    this.#parts = parts
    this.#tenant = tenant
    this.#id = id
    this.#key = liveKey(tenant, id)
  }

  readonly take = (frame: string, number: number): void => {
    if (this.#waiting.length === 0) this.#firstWaiting = number
    this.#waiting.push(frame)
    void this.#writes.run()
  }

  /** Resolves when all frames so far are stored, or have failed. */
  flush(): Promise<void> {
    return this.#writes.run()
  }

  /** After the last frame. */
  async end(): Promise<void> {
    await this.flush()
    this.#parts.live.publish(this.#key, { isOver: true })
  }

  async #write(): Promise<void> {
    // Frames of one turn of the event loop are written together.
    await new Promise((resolve) => setImmediate(resolve))
    const { history, live, host } = this.#parts
    try {
      while (this.#waiting.length > 0) {
        const frames = this.#waiting
        this.#waiting = []
        await history.events.append(this.#tenant, this.#id, this.#firstWaiting, frames)
        live.publish(this.#key, { isOver: false })
      }
    } catch (err) {
      this.#waiting = []
      host.log.warn({ err, response_id: this.#id }, 'events of background response not stored')
    }
  }
}
