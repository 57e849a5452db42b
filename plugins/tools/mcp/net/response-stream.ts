/** Reads the body of a server's response: limits its size, pauses for a slow reader and reports every premature end. */
import type { IncomingMessage } from 'node:http'
import { EventCounter, EventSplitter, type HeaderList, hasCarriageReturn, nextEventEnd } from '#kernel'
import { isReadable } from './rpc-event.ts'

interface ResponseStreamOptions {
  readonly limit: ByteLimit
  readonly maxEventBytes: number
  /**
   * The request that the stream belongs to; null for the server's own event stream. If the stream ends and cannot be
   * resumed, the request receives an error; otherwise it would wait for its timeout.
   */
  readonly requestId: number | null
  /** Called after the reader has received the reason when a limit is exceeded. */
  readonly onFlood: (error: Error) => void
}

export const SERVER_CLOSED = 'the server closed the connection'
/** JSON-RPC code of the error responses that the gateway creates itself. */
export const RESPONSE_INCOMPLETE = -32_098

/** Reads a body that is not an event stream. Rejects if it ends prematurely or exceeds the limit. */
export function readWhole(message: IncomingMessage, limit: ByteLimit): Promise<Buffer<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    message.on('data', (chunk: Buffer) => {
      try {
        limit.take(chunk)
        chunks.push(chunk)
      } catch (error) {
        reject(error)
        message.destroy()
      }
    })
    message.on('end', () => resolve(Buffer.concat(chunks)))
    message.on('error', () => reject(new Error(SERVER_CLOSED)))
    message.on('close', () => reject(new Error(SERVER_CLOSED)))
  })
}

/** Statuses of responses that cannot have a body. */
const NO_BODY = new Set([204, 205, 304])
/** Of the body of a response other than 200, which may be parsed for an error. */
const MAX_ERROR_BYTES = 65_536
/** `Headers` takes characters of one byte; the gateway's client decodes UTF-8. */
const WIDE = /[^\0-\xff]/g

/** The response that `fetch` returns. @param status as the server sent it; others than `Response` takes are replaced */
export function toResponse(
  status: number | undefined,
  list: HeaderList,
  body: ReadableStream<Uint8Array> | Buffer<ArrayBuffer>,
): Response {
  const headers = new Headers()
  for (let at = 0; at < list.length; at += 2) headers.append(list[at], list[at + 1].replace(WIDE, '?'))
  const known = Math.min(Math.max(status ?? 502, 200), 599)
  const read = body instanceof Buffer && known !== 200 ? body.subarray(0, MAX_ERROR_BYTES) : body
  const isBare = NO_BODY.has(known) || (read instanceof Buffer && read.length === 0)
  return new Response(isBare ? null : read, { status: known, headers })
}

/** An event stream, passed on in whole events: partial events are expensive for the reader. */
export class ResponseStream {
  readonly body: ReadableStream<Uint8Array>
  readonly #message: IncomingMessage
  readonly #options: ResponseStreamOptions
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #hasIds = false
  readonly #splitter = new EventSplitter()
  #hasBrokenLimit = false

  constructor(message: IncomingMessage, options: ResponseStreamOptions) {
    this.#message = message
    this.#options = options
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => this.#start(controller),
        pull: () => void message.resume(),
        cancel: () => this.#drop(),
      },
      { highWaterMark: 0 },
    )
  }

  /** Ends the stream with an error, such as a timeout. */
  fail(error: Error): void {
    if (this.#options.requestId !== null && !this.#isResumable) {
      this.#sayClosed(error.message)
      this.#close()
    } else this.#take()?.error(error)
    this.#message.destroy()
  }

  /** The reader is gone; a connection with a complete response is kept for reuse. */
  #drop(): void {
    this.#controller = null
    if (this.#message.complete) this.#message.resume()
    else this.#message.destroy()
  }

  #start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller
    this.#message.on('data', (chunk: Buffer) => this.#onData(chunk))
    this.#message.on('end', () => this.#onEnd())
    // Any socket error means that the response is incomplete.
    this.#message.on('error', () => this.fail(new Error(SERVER_CLOSED)))
    this.#message.on('close', () => {
      if (this.#controller !== null) this.fail(new Error(SERVER_CLOSED))
    })
    this.#message.pause()
  }

  #onData(chunk: Buffer): void {
    if (this.#controller === null) return
    const { limit, maxEventBytes } = this.#options
    try {
      limit.take(chunk)
      if (this.#splitter.waitingBytes + chunk.length > maxEventBytes)
        throw new ByteLimitExceeded(maxEventBytes)
    } catch (error) {
      this.#hasBrokenLimit = true
      this.fail(error as Error)
      setImmediate(this.#options.onFlood, error as Error)
      return
    }
    const events = readableEvents(this.#splitter.push(chunk))
    if (events.length === 0) return
    this.#hasIds ||= hasEventId(events)
    this.#controller.enqueue(events)
    if ((this.#controller.desiredSize ?? 0) <= 0) this.#message.pause()
  }

  /** The protocol library resumes a stream with event ids, except after a limit was exceeded. */
  get #isResumable(): boolean {
    return this.#hasIds && !this.#hasBrokenLimit
  }

  #onEnd(): void {
    if (this.#controller === null) return
    const rest = this.#splitter.takeRest()
    if (rest.length > 0 && isReadable(rest)) this.#controller.enqueue(rest)
    if (this.#options.requestId !== null && !this.#isResumable) this.#sayClosed(SERVER_CLOSED)
    this.#close()
  }

  #sayClosed(text: string): void {
    const error = { code: RESPONSE_INCOMPLETE, message: text }
    this.#emitEvent(JSON.stringify({ jsonrpc: '2.0', id: this.#options.requestId, error }))
  }

  /** Writes an event of the gateway; the blank line ends an incomplete one. */
  #emitEvent(data: string): void {
    this.#controller?.enqueue(Buffer.from(`\n\ndata: ${data}\n\n`))
  }

  #close(): void {
    this.#take()?.close()
  }

  #take(): ReadableStreamDefaultController<Uint8Array> | null {
    const controller = this.#controller
    this.#controller = null
    return controller
  }
}

/** @param events whole ones */
function readableEvents(events: Buffer): Buffer {
  const hasCr = hasCarriageReturn(events)
  const kept: Buffer[] = []
  let start = 0
  for (let end = nextEventEnd(events, 0, hasCr); end >= 0; end = nextEventEnd(events, start, hasCr)) {
    const event = events.subarray(start, end)
    if (isReadable(event)) kept.push(event)
    start = end
  }
  return Buffer.concat(kept)
}

const ID_FIELD = 'id:'
const LATER_ID_FIELDS = ['\nid:', '\rid:']

/** Whether a line is an `id` field. @param events whole ones */
export function hasEventId(events: Buffer): boolean {
  return (
    events.toString('latin1', 0, ID_FIELD.length) === ID_FIELD ||
    LATER_ID_FIELDS.some((field) => events.includes(field))
  )
}

/** The server exceeded a size limit; reading the response stops. */
export class ByteLimitExceeded extends Error {
  constructor(maxBytes: number) {
    super(`the server sent more than ${maxBytes} bytes`)
    this.name = 'ByteLimitExceeded'
  }
}

/** Counts the bytes of one response. */
export interface ByteLimit {
  /** @throws ByteLimitExceeded */
  take(chunk: Buffer): void
}

/** Cost of an event in addition to its bytes: parsing a small event takes far longer than receiving it. */
const EVENT_COST = 2_048

/** Limit for a response that ends with its body. */
export function wholeLimit(maxBytes: number): ByteLimit {
  let left = maxBytes
  return {
    take(chunk) {
      left -= chunk.length
      if (left < 0) throw new ByteLimitExceeded(maxBytes)
    },
  }
}

/** Limit for an event stream, which may stay open: the limit per minute, plus the same amount at the start. */
export function streamLimit(maxBytes: number, now: () => number = Date.now): ByteLimit {
  const events = new EventCounter()
  let allowance = maxBytes
  let lastMs = now()
  return {
    take(chunk) {
      const nowMs = now()
      allowance = Math.min(maxBytes, allowance + ((nowMs - lastMs) / 60_000) * maxBytes)
      allowance -= chunk.length + events.push(chunk) * EVENT_COST
      lastMs = nowMs
      if (allowance < 0) throw new ByteLimitExceeded(maxBytes)
    },
  }
}
