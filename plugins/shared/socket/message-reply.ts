/** The reply to one message of a socket: takes what a request's reply writes and sends it as messages. */
import { EventSplitter, nextEventEnd, type ResponseReceiver } from '#kernel'
import { readEvent } from '../formats/sse-event.ts'

/** The socket as a reply sees it. */
export interface MessageSink {
  send(message: string | Buffer, isBinary: boolean): void
  /** False while the client is slow. */
  readonly isWritable: boolean
  readonly maxBufferedBytes: number
  close(code: number, reason: string): void
  /** Disconnects at once, without a close frame. */
  disconnect(): void
}

const EVENT_STREAM = 'text/event-stream'
/** @source RFC 6455 §7.4.1 */
const INTERNAL = 1011

export class MessageReply implements ResponseReceiver {
  readonly #sink: MessageSink
  /** Null until the head says that the reply is an event stream. */
  #events: EventSplitter | null = null
  #isText = false

  constructor(sink: MessageSink) {
    this.#sink = sink
  }

  onType(contentType: string): void {
    const type = contentType.toLowerCase()
    if (type.startsWith(EVENT_STREAM)) this.#events = new EventSplitter()
    this.#isText = type.startsWith('text/') || type.includes('json')
  }

  onData(chunk: string | Buffer): boolean {
    if (chunk.length === 0) return this.#sink.isWritable
    if (this.#events === null) {
      this.#sink.send(chunk, typeof chunk !== 'string' && !this.#isText)
      return this.#sink.isWritable
    }
    const whole = this.#events.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    if (whole.length > 0) this.#sendEvents(whole)
    if (this.#events.waitingBytes > this.#sink.maxBufferedBytes)
      this.#sink.close(INTERNAL, 'an event of the reply is too large')
    return this.#sink.isWritable
  }

  onEnd(): void {
    if (this.#events !== null) this.#sendEvents(this.#events.takeRest())
  }

  onCut(isStalled: boolean): void {
    // A client that does not read would not read a close frame either.
    if (isStalled) this.#sink.disconnect()
    else this.#sink.close(INTERNAL, '')
  }

  /** The data of each event; comments, names and ids have no place in a message. */
  #sendEvents(events: Buffer): void {
    let from = 0
    while (from < events.length) {
      const end = nextEventEnd(events, from)
      const event = readEvent(events.subarray(from, end < 0 ? events.length : end))
      if (event !== null) this.#sink.send(event.data, false)
      if (end < 0) return
      from = end
    }
  }
}
