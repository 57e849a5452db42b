/** Writes a response to a receiver in this process: a message of a WebSocket, or detached work. */
import type { ExtraHeaders } from '../contracts/request.ts'
import type { ResponseReceiver } from '../contracts/socket.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { headerOf } from '../wire/headers.ts'
import { hasNoBody, ResponseSink } from './response-sink.ts'

export class MemoryResponseSink extends ResponseSink {
  readonly #receiver: ResponseReceiver
  readonly #onDone: () => void
  readonly #onReceiverError: (error: unknown) => void
  /** Headers of a stream whose head has not been sent; null otherwise. */
  #streamHeaders: HeaderList | null = null

  /**
   * @param onDone called once at the end of the response
   * @param onReceiverError called with an exception of the receiver, which ends the request like a disconnect
   */
  constructor(receiver: ResponseReceiver, onDone: () => void, onReceiverError: (error: unknown) => void) {
    super()
    this.#receiver = receiver
    this.#onDone = onDone
    this.#onReceiverError = onReceiverError
  }

  override send(
    status: number,
    contentType: string | null,
    headers: ExtraHeaders | null,
    body: string | Buffer,
  ): void {
    if (this.isDone) return
    this.#writeHead(status, contentType, headers)
    if (!hasNoBody(status) && body.length > 0) this.#pass(body)
    this.#complete()
  }

  override start(status: number, headers: HeaderList, isEventStream: boolean): void {
    if (this.isDone) return
    this.isStreaming = true
    this.isEventStream = isEventStream
    this.status = status
    this.#streamHeaders = headers
    if (hasNoBody(status)) this.end('')
  }

  override write(chunk: Buffer | string): boolean {
    // No drain follows after the end, or if the request failed before its stream was started.
    if (this.isDone || !this.isStreaming) return true
    if (chunk.length === 0) return this.isWritable
    if (this.#streamHeaders !== null) this.#writeHead(this.status, null, this.#streamHeaders)
    this.#pass(chunk)
    // The receiver may have cancelled the request meanwhile.
    return this.isDone || this.isWritable
  }

  #pass(chunk: Buffer | string): void {
    this.countChunk(chunk)
    try {
      if (!this.isDone) this.isWritable = this.#receiver.onData(chunk)
    } catch (error) {
      this.#receiverFailed(error)
    }
  }

  #receiverFailed(error: unknown): void {
    this.#onReceiverError(error)
    this.cancel()
  }

  override end(last: Buffer | string): void {
    if (this.isDone || !this.isStreaming) return
    if (this.#streamHeaders !== null) this.#writeHead(this.status, null, this.#streamHeaders)
    this.write(last)
    this.#complete()
  }

  override destroy(): void {
    if (this.isDone) return
    this.#notify(() => this.#receiver.onCut(!this.isWritable))
    this.cancel()
  }

  /** There is no connection and no timeout of the server library; pings keep a WebSocket open. */
  override keepOpen(): void {}

  override remoteAddress(): string {
    return ''
  }

  /** Ends the request as if its client had disconnected. */
  cancel(): void {
    this.clientLeft()
  }

  /** The receiver has taken data. @param isWritable whether it has room for more */
  receiverDrained(isWritable: boolean): void {
    if (this.isWritable || this.isDone) return
    // A partial drain is progress: the client is slow but connected.
    if (isWritable) this.drained()
    else this.drains++
  }

  #writeHead(status: number, contentType: string | null, headers: ExtraHeaders | null): void {
    this.#streamHeaders = null
    this.status = status
    this.firstByteAtMs = performance.now()
    const type = contentType ?? (headers === null ? undefined : headerOf(headers, 'content-type'))
    if (type !== undefined) this.#notify(() => this.#receiver.onType(type))
  }

  #notify(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#receiverFailed(error)
    }
  }

  protected override done(): void {
    if (this.isDone) return
    super.done()
    this.#onDone()
  }

  #complete(): void {
    if (!this.isDone) this.#notify(() => this.#receiver.onEnd())
    this.done()
  }
}
