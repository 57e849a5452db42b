/** A keep-alive connection with one event stream after another, over a plain socket. */
import { connect, type Socket } from 'node:net'
import { ChunkedDecoder } from '../../test/support/chunked-decoder.ts'

export interface StreamHandler {
  /** Decoded body bytes. */
  onBody(part: Buffer): void
  /** @param failure null if the stream is complete */
  onEnd(failure: string | null): void
}

export class StreamConnection {
  readonly #socket: Socket
  #handler: StreamHandler | null = null
  #decoder: ChunkedDecoder | null = null
  #head = ''
  isOpen = true

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.setNoDelay(true)
    this.#socket.on('data', (bytes) => this.#take(bytes))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => {
      this.isOpen = false
      this.#finish('the connection closed')
    })
  }

  send(request: Buffer, handler: StreamHandler): void {
    this.#handler = handler
    this.#decoder = null
    this.#head = ''
    this.#socket.write(request)
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(bytes: Buffer): void {
    if (this.#decoder !== null) {
      this.#push(bytes, this.#decoder)
      return
    }
    const end = bytes.indexOf('\r\n\r\n')
    this.#head += bytes.toString('latin1', 0, end < 0 ? bytes.length : end)
    if (end < 0) return
    if (!this.#head.startsWith('HTTP/1.1 200')) {
      // The error body is not read, so the connection cannot be reused.
      this.#finish(this.#head.slice(9, 12))
      this.close()
      return
    }
    this.#decoder = new ChunkedDecoder((part) => this.#handler?.onBody(part))
    this.#push(bytes.subarray(end + 4), this.#decoder)
  }

  #push(bytes: Buffer, decoder: ChunkedDecoder): void {
    decoder.push(bytes)
    if (decoder.isDone) this.#finish(null)
  }

  #finish(failure: string | null): void {
    const handler = this.#handler
    this.#handler = null
    handler?.onEnd(failure)
  }
}
