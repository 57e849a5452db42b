/** Stored events of streams, for resuming; each record holds the frames of one write. */
import type { EventLog } from '#kernel'
import { deleteRange } from './change-list.ts'
import { type HistoryParts, isId, padded, within } from './collections.ts'

/** Approximate maximum bytes of frames per read. */
const READ_BYTES = 1024 * 1024

export class StoredEvents implements EventLog {
  readonly #parts: HistoryParts

  constructor(parts: HistoryParts) {
    this.#parts = parts
  }

  async append(
    tenant: string,
    responseId: string,
    firstNumber: number,
    frames: readonly string[],
  ): Promise<void> {
    if (frames.length === 0) return
    const expiresAtMs = Date.now() + this.#parts.config.eventsKeptMs
    await this.#parts.events.put(tenant, `${responseId}.${padded(firstNumber)}`, frames, {
      expiresAtMs,
    })
  }

  async clear(tenant: string, responseId: string): Promise<void> {
    if (!isId(responseId)) return
    const bounds = { ...within(responseId), maxBytes: READ_BYTES }
    await deleteRange(this.#parts.store, this.#parts.events, tenant, bounds)
  }

  async read(
    tenant: string,
    responseId: string,
    after: number,
  ): Promise<readonly { number: number; frame: string }[]> {
    if (!isId(responseId)) return []
    const { from: first, to } = within(responseId)
    // The record of the next frame may start before it.
    const upTo = `${first}${padded(Math.max(0, after + 2))}`
    const begun = await this.#parts.events.range(tenant, {
      from: first,
      to: upTo,
      reverse: true,
      limit: 1,
    })
    const from = begun.records[0]?.id ?? first
    const { records } = await this.#parts.events.range(tenant, { from, to, maxBytes: READ_BYTES })
    return records.flatMap(({ id, value }) => {
      const start = Number(id.slice(first.length))
      return value
        .map((frame, index) => ({ number: start + index, frame }))
        .filter(({ number }) => number > after)
    })
  }
}
