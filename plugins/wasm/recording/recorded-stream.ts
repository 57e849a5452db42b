/** Records the events of one stream as inputs of its modules. */

import type { StreamEventSink } from '../streams/shadow-streams.ts'
import { DONE, readBlocks } from '../streams/sse-events.ts'
import type { StreamEvent } from '../threads/guest-task.ts'
import { streamData } from './recorded-step.ts'

/** Per stream; recording stops at the limit. */
const MAX_EVENTS = 1_000
const MAX_DATA_UNITS = 65_536

interface RecordedEvent {
  readonly name?: string
  readonly data: unknown
}

export class RecordedStream implements StreamEventSink {
  readonly #inner: StreamEventSink
  readonly #keep: (events: readonly RecordedEvent[]) => void
  readonly #events: RecordedEvent[] = []
  #units = 0
  #isOver = false

  /** @param keep receives the events when the stream ends or reaches a limit */
  constructor(inner: StreamEventSink, keep: (events: readonly RecordedEvent[]) => void) {
    this.#inner = inner
    this.#keep = keep
  }

  take(events: Buffer, isLast: boolean): Buffer | Promise<Buffer> {
    if (!this.#isOver) this.#note(events, isLast)
    return this.#inner.take(events, isLast)
  }

  #note(events: Buffer, isLast: boolean): void {
    for (const { event, isDone } of readBlocks(events)) {
      const shown = isDone ? { name: null, data: DONE } : event
      if (shown !== null && !this.#isOver) this.#add(shown)
      if (isDone) this.#isOver = true
    }
    if (isLast) this.#isOver = true
    if (this.#isOver) this.#keep(this.#events)
  }

  #add({ name, data }: StreamEvent): void {
    this.#units += data.length
    if (this.#events.length >= MAX_EVENTS || this.#units > MAX_DATA_UNITS) this.#isOver = true
    else this.#events.push({ ...(name !== null && { name }), data: streamData(data) })
  }
}
