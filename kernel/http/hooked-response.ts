/**
 * Passes a response through the hooks of its route: `onResponse` before the first byte, `onEvents` on streamed
 * data. Hooks may be asynchronous: order is kept and the writer pauses meanwhile. Exists only for requests whose route has
 * such hooks.
 */
import type { IncomingResponse, RouteHooks } from '../contracts/hook.ts'
import type { ExtraHeaders } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { EventSplitter } from '../wire/event-splitter.ts'
import { httpErrors } from './http-errors.ts'
import { assertSendable } from './response-check.ts'
import type { ResponseSink } from './response-sink.ts'
import type { ServedRequest } from './server-parts.ts'

const NOTHING = Buffer.alloc(0)
const LF = 0x0a
const LINE_END = Buffer.from('\n')
const EVENT_END = Buffer.from('\n\n')
/** The writer pauses while more than this is held back for a hook. */
const MAX_HELD_BYTES = 65_536

/** A longer event ends the stream with an error: hooks see whole events only. */
const MAX_EVENT_BYTES = 1_048_576

export class HookedResponse {
  readonly #ctx: ServedRequest
  readonly #hooks: RouteHooks
  readonly #sink: ResponseSink
  #splitter: EventSplitter | null = null
  /** An asynchronous hook is running; data is held back. */
  #isBusy = false
  #held: Buffer[] = []
  #heldBytes = 0
  #hasEnded = false
  #isOver = false
  #isWriterWaiting = false
  /** The client has not taken what was written last. */
  #isClientSlow = false
  #failure: { readonly error: unknown } | null = null

  constructor(ctx: ServedRequest) {
    this.#ctx = ctx
    this.#hooks = ctx.hooks
    this.#sink = ctx.sink
  }

  /** Sends a complete response. The body's memory may be reused after the call. */
  sendWhole(
    status: number,
    contentType: string | null,
    headers: ExtraHeaders | null,
    body: string | Buffer,
  ): void {
    const { onResponse, maxResponseBytes } = this.#hooks
    if (onResponse === null) {
      this.#sink.send(status, contentType, headers, body)
      return
    }
    if (this.#isBusy) return
    const list: HeaderList = headers === null ? [] : [...headers]
    if (contentType !== null) list.push('content-type', contentType)
    // A hook may keep the body, and the caller may reuse its memory.
    const shown = Buffer.byteLength(body) <= maxResponseBytes ? Buffer.from(body as Buffer) : null
    const response: IncomingResponse = { status, headers: list, body: shown }
    const pending = this.#runOnResponse(onResponse, response)
    if (pending === undefined) {
      this.#sink.send(response.status, null, response.headers, response.body ?? body)
      return
    }
    const kept = shown ?? Buffer.from(body as Buffer)
    this.#await(pending, () => {
      this.#sink.send(response.status, null, response.headers, response.body ?? kept)
    })
  }

  startStream(status: number, headers: HeaderList, isEventStream: boolean): void {
    if (isEventStream && this.#hooks.onEvents !== null) this.#splitter = new EventSplitter()
    const { onResponse } = this.#hooks
    if (onResponse === null) {
      this.#sink.start(status, headers, isEventStream)
      return
    }
    const response: IncomingResponse = { status, headers, body: null }
    const pending = this.#runOnResponse(onResponse, response)
    const open = () => this.#sink.start(response.status, response.headers, isEventStream)
    if (pending === undefined) open()
    else this.#await(pending, open)
  }

  /** @returns false to wait for the drain */
  writeStream(chunk: Buffer | string): boolean {
    if (this.#isOver) return true
    if (this.#isBusy) {
      this.#hold(Buffer.from(chunk as Buffer))
      return this.#mayGoOn()
    }
    this.#take(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    return this.#isOver || this.#mayGoOn()
  }

  endStream(last: Buffer | string): void {
    if (this.#hasEnded || this.#isOver) return
    this.#hasEnded = true
    if (last.length > 0) this.#hold(Buffer.from(last as Buffer))
    if (!this.#isBusy) this.#goOn()
  }

  /** The client has taken what was buffered. */
  clientDrained(): void {
    this.#isClientSlow = false
    this.#resumeWriter()
  }

  /** Keeps an error until held data is sent. @returns false if nothing is held back */
  failWhenReady(error: unknown): boolean {
    if (!this.#isBusy || this.#isOver) return false
    this.#failure ??= { error }
    return true
  }

  /** Discards held data and writes nothing more. */
  giveUp(): void {
    this.#isOver = true
    this.#held = []
  }

  #hold(chunk: Buffer): void {
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
  }

  #mayGoOn(): boolean {
    if (!this.#isClientSlow && this.#heldBytes <= MAX_HELD_BYTES) return true
    this.#isWriterWaiting = true
    return false
  }

  #resumeWriter(): void {
    if (!this.#isWriterWaiting || !this.#mayGoOn()) return
    this.#isWriterWaiting = false
    this.#ctx.resumeWriter()
  }

  #take(chunk: Buffer): void {
    const { onEvents } = this.#hooks
    if (this.#splitter === null || onEvents === null) {
      this.#write(chunk)
      return
    }
    const events = this.#splitter.push(chunk)
    // Hooks may keep them.
    if (events.length > 0) this.#transform(onEvents, Buffer.from(events), false)
    else if (this.#splitter.waitingBytes > MAX_EVENT_BYTES)
      this.#fail(httpErrors.event_too_large(MAX_EVENT_BYTES))
  }

  #transform(onEvents: NonNullable<RouteHooks['onEvents']>, events: Buffer, isLast: boolean): void {
    try {
      const changed = onEvents(this.#ctx, events, isLast)
      if (changed instanceof Promise) this.#await(changed, (bytes) => this.#write(bytes))
      else this.#write(changed)
    } catch (error) {
      this.#fail(error)
    }
  }

  #write(chunk: Buffer): void {
    this.#isClientSlow = !this.#sink.write(chunk)
  }

  /** Holds data back until the promise of a hook settles. */
  #await<T>(pending: Promise<T>, then: (result: T) => unknown): void {
    this.#isBusy = true
    pending
      .then((result) => {
        this.#isBusy = false
        if (this.#isOver || this.#sink.isDone) return
        then(result)
        this.#goOn()
      })
      .catch((error: unknown) => this.#fail(error))
  }

  /** Passes on held data until a hook is asynchronous again. */
  #goOn(): void {
    while (this.#held.length > 0 && !this.#isBusy && !this.#isOver) {
      // In one piece, which costs fewer hook calls and writes.
      const chunk = this.#held.length === 1 ? this.#held[0] : Buffer.concat(this.#held)
      this.#held = []
      this.#heldBytes = 0
      this.#take(chunk)
    }
    if (this.#isBusy || this.#isOver || this.#sink.isDone) return
    if (this.#failure !== null) this.#fail(this.#failure.error)
    else if (this.#hasEnded) this.#finish()
    else this.#resumeWriter()
  }

  /**
   * Ends the stream. An event that the worker left incomplete is completed first and passed to the hooks, because some
   * clients read events by line.
   */
  #finish(): void {
    const { onEvents } = this.#hooks
    const splitter = this.#splitter
    if (splitter !== null && onEvents !== null) {
      const rest = splitter.takeRest()
      if (rest.length > 0) this.#transform(onEvents, withEnd(rest), false)
      else {
        this.#splitter = null
        this.#transform(onEvents, NOTHING, true)
      }
      if (!this.#isBusy) this.#goOn()
      return
    }
    this.#isOver = true
    this.#sink.end(NOTHING)
  }

  /** An exception of a hook fails this request. */
  #runOnResponse(
    onResponse: NonNullable<RouteHooks['onResponse']>,
    response: IncomingResponse,
  ): Promise<void> | undefined {
    try {
      const pending = onResponse(this.#ctx, response)
      if (pending instanceof Promise) return pending.then(() => assertSendable(response))
      assertSendable(response)
      return undefined
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #fail(error: unknown): void {
    if (this.#isOver) return
    this.giveUp()
    this.#ctx.failHooked(error)
  }
}

function withEnd(event: Buffer): Buffer {
  // A LF after a CR is the same line end.
  return Buffer.concat([event, event[event.length - 1] === LF ? LINE_END : EVENT_END])
}
