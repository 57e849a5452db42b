/** A reply without a connection: takes what a reply writer writes, and gives it to a taker. */
import type { HttpResponse } from 'uWebSockets.js'
import type { ReplyTaker } from '../contracts/reply-taker.ts'

/** What a reply needs of the connection that it is written to. */
type ReplyPort = Pick<
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

const NO_BYTES = new ArrayBuffer(0)

export class TakenReply {
  readonly #taker: ReplyTaker
  #onWritable: ((offset: number) => boolean) | null = null
  #onAborted: (() => void) | null = null

  constructor(taker: ReplyTaker) {
    this.#taker = taker
  }

  /** As the reply writer takes it. */
  get port(): HttpResponse {
    return this satisfies ReplyPort as unknown as HttpResponse
  }

  /** The taker has room again. */
  drained(): void {
    this.#onWritable?.(0)
  }

  /** As if the client had left. */
  abort(): void {
    const listener = this.#onAborted
    this.#onAborted = null
    listener?.()
  }

  /** Nothing is held back: several messages of a socket in one cork are not safe with this library (platform fact). */
  cork(write: () => void): HttpResponse {
    write()
    return this.port
  }

  writeStatus(): HttpResponse {
    return this.port
  }

  writeHeader(name: unknown, value: unknown): HttpResponse {
    if (name === 'content-type' && typeof value === 'string') this.#taker.onType(value)
    return this.port
  }

  write(chunk: unknown): boolean {
    return this.#take(chunk)
  }

  end(last?: unknown): HttpResponse {
    if (last !== undefined) this.#take(last)
    this.#taker.onEnd()
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
    this.#taker.onCut()
    this.abort()
    return this.port
  }

  /** Asked of whoever began the request instead. */
  getRemoteAddressAsText(): ArrayBuffer {
    return NO_BYTES
  }

  #take(given: unknown): boolean {
    return this.#taker.onData(given as string | Buffer)
  }
}
