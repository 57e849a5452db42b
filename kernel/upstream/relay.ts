/**
 * Relays one answer: worker to client as events, no promise and no copy on the way. A slow client pauses the
 * worker, a client that leaves aborts it, a worker that breaks becomes an error the client can see. @hot
 */
import type { RelayContext, SinkListener } from '../contracts/reply-sink.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { Dispatch } from './dispatch.ts'
import type { DispatchParts } from './dispatch-parts.ts'
import { isPlainEventStream, toClientHeaders } from './response-headers.ts'
import type { RelayOptions } from './upstream.ts'

/** Announced bodies up to this size leave as one whole reply; longer ones and unannounced ones are streamed. */
const MAX_WHOLE_BYTES = 1_048_576
const NO_BYTES = Buffer.alloc(0)

export class Relay extends Dispatch implements SinkListener {
  #headers: HeaderList = []
  /** Bytes of a whole reply still to come; -1 while streaming. */
  #missing = -1
  #whole: Buffer | null = null
  /** The body so far, held back because a hook may want to see it whole; null when it is not. */
  #gathered: Buffer[] | null = null
  #gatheredBytes = 0

  /** Never throws: what goes wrong is the client's reply. */
  static start(ctx: RelayContext, options: RelayOptions, model: string, parts: DispatchParts): void {
    const relay = new Relay(ctx, options, model, parts)
    ctx.setListener(relay)
    relay.begin()
  }

  protected override body(): Buffer {
    return this.ctx.rawBody
  }

  protected override answerStarted(headers: HeaderList, contentLength: number): void {
    this.#headers = toClientHeaders(headers)
    const isEventStream = isPlainEventStream(headers)
    if (!isEventStream && contentLength >= 0 && contentLength <= MAX_WHOLE_BYTES) {
      this.#missing = contentLength
      return
    }
    this.ctx.forgetBody()
    if (this.#mayBeHeldBack(isEventStream, contentLength)) this.#gathered = []
    else this.ctx.startStream(this.status, this.#headers, isEventStream)
  }

  /** A hook wants to see bodies whose length is not announced, or that are longer than what is sent whole anyway. */
  #mayBeHeldBack(isEventStream: boolean, contentLength: number): boolean {
    const { onResponse, maxReplyBytes } = this.ctx.hooks
    return onResponse !== null && !isEventStream && maxReplyBytes > 0 && contentLength <= maxReplyBytes
  }

  protected override answerData(chunk: Buffer): void {
    if (this.#missing >= 0) this.#collect(chunk)
    else if (this.#gathered !== null) this.#gather(this.#gathered, chunk)
    else if (!this.ctx.writeStream(chunk)) this.exchange?.pause()
  }

  /** Holds back what may still be shown to a hook; more than it wants to see is streamed after all. */
  #gather(gathered: Buffer[], chunk: Buffer): void {
    gathered.push(Buffer.from(chunk))
    this.#gatheredBytes += chunk.length
    if (this.#gatheredBytes <= this.ctx.hooks.maxReplyBytes) return
    this.#gathered = null
    this.ctx.startStream(this.status, this.#headers, false)
    if (!this.ctx.writeStream(Buffer.concat(gathered))) this.exchange?.pause()
  }

  /** A body that came in one piece is sent straight from the read buffer. bench: relay-json */
  #collect(chunk: Buffer): void {
    if (this.#whole === null) {
      if (chunk.length === this.#missing) {
        this.#missing = -1
        this.finish()
        this.ctx.sendWhole(this.status, this.#headers, chunk)
        return
      }
      this.#whole = Buffer.allocUnsafe(this.#missing)
    }
    chunk.copy(this.#whole, this.#whole.length - this.#missing)
    this.#missing -= chunk.length
  }

  protected override answerEnded(): void {
    if (this.isOver) return
    this.finish()
    if (this.#gathered !== null) this.ctx.sendWhole(this.status, this.#headers, Buffer.concat(this.#gathered))
    else if (this.#missing === -1) this.ctx.endStream()
    else this.ctx.sendWhole(this.status, this.#headers, this.#whole ?? NO_BYTES)
  }

  protected override failed(error: unknown): void {
    this.ctx.fail(error)
  }

  protected override over(): void {
    this.ctx.setListener(null)
  }

  onClientDrain(): void {
    this.exchange?.resume()
  }

  onCancel(): void {
    this.cancel()
  }
}
