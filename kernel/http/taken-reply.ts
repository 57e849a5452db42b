/** A reply without a connection: takes what a reply writer writes, and gives it to a taker. */
import type { ReplyTaker } from '../contracts/reply-taker.ts'
import type { ReplyPort } from './reply-writer.ts'

const NO_BYTES = new ArrayBuffer(0)

export class TakenReply implements ReplyPort {
  readonly #taker: ReplyTaker
  #onWritable: ((offset: number) => boolean) | null = null
  #onAborted: (() => void) | null = null

  constructor(taker: ReplyTaker) {
    this.#taker = taker
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
  cork(write: () => void): void {
    write()
  }

  writeStatus(): void {}

  writeHeader(name: string, value: string): void {
    if (name === 'content-type') this.#taker.onType(value)
  }

  write(chunk: string | Buffer): boolean {
    return this.#taker.onData(chunk)
  }

  end(last?: string | Buffer): void {
    if (last !== undefined) this.#taker.onData(last)
    this.#taker.onEnd()
  }

  endWithoutBody(): void {}

  tryEnd(body: string | Buffer): [boolean, boolean] {
    this.#taker.onData(body)
    return [true, true]
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#onWritable = handler
  }

  onAborted(handler: () => void): void {
    this.#onAborted = handler
  }

  close(): void {
    this.#taker.onCut()
    this.abort()
  }

  /** No library timeout runs on this reply; a WebSocket is kept open by its pings. */
  pause(): void {}

  resume(): void {}

  /** The address comes from the request that this one began with. */
  getRemoteAddress(): ArrayBuffer {
    return NO_BYTES
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return NO_BYTES
  }
}
