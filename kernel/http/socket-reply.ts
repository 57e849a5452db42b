/** The reply to one message of a socket: takes what a request's reply writes and sends it as messages. */
import type { HttpResponse } from 'uWebSockets.js'
import { nextEventEnd } from '../wire/event-borders.ts'
import { EventSplitter } from '../wire/event-splitter.ts'
import { readEvent } from '../wire/sse-event.ts'

/** What a reply needs of the connection that it is written to. */
export type ReplyPort = Pick<
  HttpResponse,
  | 'cork'
  | 'writeStatus'
  | 'writeHeader'
  | 'write'
  | 'end'
  | 'endWithoutBody'
  | 'tryEnd'
  | 'onWritable'
  | 'onAborted'
  | 'close'
  | 'getRemoteAddressAsText'
>

/** The socket as a reply sees it. */
export interface MessageSink {
  /** @returns false when the client is slow */
  sendMessage(message: string | Buffer, isBinary: boolean): boolean
  readonly isWritable: boolean
  readonly maxBufferedBytes: number
  close(code: number, reason: string): void
}

const EVENT_STREAM = 'text/event-stream'
const NO_BYTES = new ArrayBuffer(0)

export class SocketReply {
  readonly #sink: MessageSink
  /** Null until the head says that the reply is an event stream. */
  #events: EventSplitter | null = null
  #isText = false
  #onWritable: ((offset: number) => boolean) | null = null
  #onAborted: (() => void) | null = null

  constructor(sink: MessageSink) {
    this.#sink = sink
  }

  /** As the reply writer takes it. */
  get port(): HttpResponse {
    return this satisfies ReplyPort as unknown as HttpResponse
  }

  /** The client has taken what was buffered. */
  drained(): void {
    this.#onWritable?.(0)
  }

  /** The socket is gone. */
  aborted(): void {
    const listener = this.#onAborted
    this.#onAborted = null
    listener?.()
  }

  /** Messages leave one by one: several writes in one cork are not safe with this library (platform fact). */
  cork(write: () => void): HttpResponse {
    write()
    return this.port
  }

  writeStatus(): HttpResponse {
    return this.port
  }

  writeHeader(name: unknown, value: unknown): HttpResponse {
    if (name === 'content-type' && typeof value === 'string') {
      const type = value.toLowerCase()
      if (type.startsWith(EVENT_STREAM)) this.#events = new EventSplitter()
      this.#isText = type.startsWith('text/') || type.includes('json')
    }
    return this.port
  }

  write(chunk: unknown): boolean {
    this.#take(chunk)
    return this.#sink.isWritable
  }

  end(last?: unknown): HttpResponse {
    if (last !== undefined) this.#take(last)
    if (this.#events !== null) this.#sendEvents(this.#events.takeRest())
    return this.port
  }

  endWithoutBody(): HttpResponse {
    return this.port
  }

  tryEnd(body: unknown): [boolean, boolean] {
    this.#take(body)
    return [true, true]
  }

  onWritable(handler: (offset: number) => boolean): HttpResponse {
    this.#onWritable = handler
    return this.port
  }

  onAborted(handler: () => void): HttpResponse {
    this.#onAborted = handler
    return this.port
  }

  close(): HttpResponse {
    this.#sink.close(1011, '')
    return this.port
  }

  /** Asked of the request that opened the socket instead. */
  getRemoteAddressAsText(): ArrayBuffer {
    return NO_BYTES
  }

  #take(given: unknown): void {
    const chunk = given as string | Buffer
    if (chunk.length === 0) return
    if (this.#events === null) {
      this.#sink.sendMessage(chunk, typeof chunk !== 'string' && !this.#isText)
      return
    }
    const whole = this.#events.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    if (whole.length > 0) this.#sendEvents(whole)
    if (this.#events.waitingBytes > this.#sink.maxBufferedBytes)
      this.#sink.close(1011, 'an event of the reply is too large')
  }

  /** The data of each event; comments, names and ids have no place in a message. */
  #sendEvents(events: Buffer): void {
    let from = 0
    while (from < events.length) {
      const end = nextEventEnd(events, from)
      const event = readEvent(events.subarray(from, end < 0 ? events.length : end))
      if (event !== null) this.#sink.sendMessage(event.data, false)
      if (end < 0) return
      from = end
    }
  }
}
