/** Base of readers of event streams: splits the stream into events within a size limit. @hot */

import type { EngineReader, EngineSink } from '#kernel'
import { EventSplitter, nextEventEnd } from '#kernel'
import { readEvent } from '../formats/sse-event.ts'
import { answerErrors } from './answer-errors.ts'

export abstract class EventAnswerReader implements EngineReader {
  protected readonly sink: EngineSink
  readonly #splitter = new EventSplitter()
  readonly #maxEventBytes: number
  #isFirst = true
  #isOver = false

  constructor(sink: EngineSink, maxEventBytes: number) {
    this.sink = sink
    this.#maxEventBytes = maxEventBytes
  }

  /**
   * Processes one event.
   * @param data never empty
   * @param name the `event` field; null if there is none
   * @returns true if the answer has finished or failed
   * @throws SyntaxError for incomplete data
   */
  protected abstract take(data: string, name: string | null): boolean

  /** Called if the stream ends without a final event; the answer is truncated unless the format says otherwise. */
  protected ended(): void {}

  onStart(): void {}

  onData(chunk: Buffer): void {
    if (this.#isOver) return
    const events = this.#splitter.push(chunk)
    for (let at = 0; at < events.length && !this.#isOver; ) {
      const end = nextEventEnd(events, at)
      this.#read(events.subarray(at, end < 0 ? events.length : end))
      at = end < 0 ? events.length : end
    }
    if (this.#splitter.waitingBytes > this.#maxEventBytes) {
      this.#isOver = true
      this.sink.fail(answerErrors.worker_answer_too_long(this.#maxEventBytes))
    }
  }

  #read(bytes: Buffer): void {
    const event = readEvent(this.#isFirst ? withoutByteOrderMark(bytes) : bytes)
    this.#isFirst = false
    if (event !== null && event.data !== '') this.#isOver = this.take(event.data, event.name)
  }

  /** Accepts a last event without its empty line; ignores an incomplete one. */
  onEnd(): void {
    const rest = this.#splitter.takeRest()
    if (this.#isOver) return
    try {
      if (rest.length > 0) this.#read(rest)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
    }
    if (!this.#isOver) this.ended()
  }
}

const BYTE_ORDER_MARK = Buffer.from('\ufeff')

/** A stream may begin with one, which is not part of its first line. @source WHATWG HTML, Server-sent events */
function withoutByteOrderMark(bytes: Buffer): Buffer {
  const { length } = BYTE_ORDER_MARK
  return bytes.subarray(0, length).equals(BYTE_ORDER_MARK) ? bytes.subarray(length) : bytes
}
