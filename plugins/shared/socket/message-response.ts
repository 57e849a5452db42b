/** Receives the response to one message of a WebSocket and sends it as messages. */
import {
  EventSplitter,
  hasCarriageReturn,
  nextEventEnd,
  type ResponseReceiver,
  type SocketConnection,
} from '#kernel'
import { readEvent } from '../formats/sse-event.ts'

const EVENT_STREAM = 'text/event-stream'
/** @source RFC 6455 §7.4.1 */
const INTERNAL_ERROR = 1011

export class MessageResponse implements ResponseReceiver {
  readonly #connection: SocketConnection
  readonly #maxEventBytes: number
  /** Null until the head shows an event stream. */
  #events: EventSplitter | null = null
  #isText = false

  constructor(connection: SocketConnection, maxEventBytes: number) {
    this.#connection = connection
    this.#maxEventBytes = maxEventBytes
  }

  onType(contentType: string): void {
    const type = contentType.toLowerCase()
    if (type.startsWith(EVENT_STREAM)) this.#events = new EventSplitter()
    this.#isText = type.startsWith('text/') || type.includes('json')
  }

  onData(chunk: string | Buffer): boolean {
    if (this.#events === null) this.#connection.send(chunk, typeof chunk !== 'string' && !this.#isText)
    else {
      this.#sendEvents(this.#events.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk))
      if (this.#events.waitingBytes > this.#maxEventBytes)
        this.#connection.close(INTERNAL_ERROR, 'an event of the response is too large')
    }
    return this.#connection.isWritable
  }

  onEnd(): void {
    if (this.#events !== null) this.#sendEvents(this.#events.takeRest())
  }

  onCut(isStalled: boolean): void {
    // A client that does not read would not read a close frame either.
    if (isStalled) this.#connection.disconnect()
    else this.#connection.close(INTERNAL_ERROR)
  }

  /** Sends the data of each event; comments, names and ids have no place in a message. */
  #sendEvents(events: Buffer): void {
    const hasCr = hasCarriageReturn(events)
    let from = 0
    while (from < events.length) {
      const end = nextEventEnd(events, from, hasCr)
      const event = readEvent(events.subarray(from, end < 0 ? events.length : end))
      if (event !== null) this.#connection.send(event.data, false)
      if (end < 0) return
      from = end
    }
  }
}
