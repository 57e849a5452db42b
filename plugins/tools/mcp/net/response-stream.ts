/** The body of a server's answer: counted, held back for a slow reader, and never ending unnoticed. */
import type { IncomingMessage } from 'node:http'
import { EventSplitter } from '#kernel'
import { type ByteLimit, ByteLimitExceeded } from './byte-limit.ts'

export interface ResponseStreamOptions {
  readonly limit: ByteLimit
  /** Bytes of one event. */
  readonly maxEventBytes: number
  /**
   * The request that the stream answers; null for streams of the server's own. When the stream ends, and could not be
   * resumed, this request is answered with an error, or it would wait for its time limit.
   */
  readonly requestId: number | null
}

export const SERVER_CLOSED = 'the server closed the connection'
/** JSON-RPC code of the answers that are made up here, for whoever reads the error. */
export const ANSWER_BROKEN = -32_098

/** A body that is no event stream. Rejects when it breaks off or breaks the limit. */
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

/** An event stream, handed on in whole events: a half one costs its reader more than it costs us. */
export class ResponseStream {
  readonly body: ReadableStream<Uint8Array>
  readonly #message: IncomingMessage
  readonly #options: ResponseStreamOptions
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  readonly #ids = new EventIdSearch()
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

  /** The request was given up: its stream ends as if it had been answered, so that nobody asks for the rest. */
  giveUp(): void {
    const { requestId } = this.#options
    if (requestId !== null) this.#say(`{"jsonrpc":"2.0","id":${requestId},"result":{}}`)
    this.#close()
    this.#message.destroy()
  }

  /** Ends with an error, such as a time limit. */
  fail(error: Error): void {
    if (this.#options.requestId !== null && !this.#isResumable) {
      this.#sayClosed(error.message)
      this.#close()
    } else this.#take()?.error(error)
    this.#message.destroy()
  }

  /** Nobody reads on; a connection whose answer is whole already can be used again. */
  #drop(): void {
    this.#controller = null
    if (this.#message.complete) this.#message.resume()
    else this.#message.destroy()
  }

  #start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller
    this.#message.on('data', (chunk: Buffer) => this.#onData(chunk))
    this.#message.on('end', () => this.#onEnd())
    // Whatever the socket says, the answer is broken.
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
      return
    }
    const events = this.#splitter.push(chunk)
    if (events.length === 0) return
    this.#ids.read(events)
    this.#controller.enqueue(events)
    if ((this.#controller.desiredSize ?? 0) <= 0) this.#message.pause()
  }

  /** The protocol library asks for the rest of a stream with ids, unless it is not to have it. */
  get #isResumable(): boolean {
    return this.#ids.isFound && !this.#hasBrokenLimit
  }

  #onEnd(): void {
    if (this.#controller === null) return
    const rest = this.#splitter.takeRest()
    if (rest.length > 0) this.#controller.enqueue(rest)
    if (this.#options.requestId !== null && !this.#isResumable) this.#sayClosed(SERVER_CLOSED)
    this.#close()
  }

  #sayClosed(text: string): void {
    const error = { code: ANSWER_BROKEN, message: text }
    this.#say(JSON.stringify({ jsonrpc: '2.0', id: this.#options.requestId, error }))
  }

  /** An event of our own; the blank line ends whatever was left half. */
  #say(data: string): void {
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

const WANTED = Buffer.from('id')
const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const COLON = 58

export class EventIdSearch {
  /** Some line of the stream is an `id` field. */
  isFound = false
  /** Bytes of the line that match so far; -1: this line is another. */
  #matched = 0

  read(chunk: Uint8Array): void {
    if (this.isFound) return
    for (const byte of chunk) {
      if (byte === LINE_FEED || byte === CARRIAGE_RETURN) this.#matched = 0
      else if (this.#matched === WANTED.length && byte === COLON) {
        this.isFound = true
        return
      } else this.#matched = this.#matched >= 0 && byte === WANTED[this.#matched] ? this.#matched + 1 : -1
    }
  }
}
