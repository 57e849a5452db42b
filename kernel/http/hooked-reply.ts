/**
 * The way of a reply through the hooks of its route: `onResponse` before the first byte, `onEvents` and `onChunk` on
 * what is streamed. Hooks may answer later; order is kept and the writer is told to wait meanwhile. Exists only for
 * requests whose route has such hooks.
 */
import type { IncomingResponse, RouteHooks } from '../contracts/hook.ts'
import type { ReplyHeaders, RequestContext } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { EventSplitter } from '../wire/event-splitter.ts'
import { httpErrors } from './http-errors.ts'
import { assertSendable } from './reply-check.ts'

const NOTHING = Buffer.alloc(0)
const LF = 0x0a
const LINE_END = Buffer.from('\n')
const EVENT_END = Buffer.from('\n\n')
/** More than this, held back for a hook, makes the writer wait. A slow client does in any case. */
const MAX_HELD_BYTES = 65_536

/** A longer event ends the stream: it could be shown to no hook. */
const MAX_EVENT_BYTES = 1_048_576

/** Where the hooked reply goes: the plain writer beneath. */
export interface PlainReply {
  readonly isDone: boolean
  writeWhole(
    status: number,
    contentType: string | null,
    headers: ReplyHeaders | null,
    body: string | Buffer,
  ): void
  openStream(status: number, headers: HeaderList, isEventStream: boolean): void
  writeChunk(chunk: Buffer): boolean
  closeStream(last?: Buffer): void
  /** A hook failed, or what `failWhenReady` was given has come up. */
  failHooked(error: unknown): void
  /** The hooks have caught up: whoever was told to wait may go on. */
  resumeWriter(): void
}

export class HookedReply {
  readonly #ctx: RequestContext
  readonly #hooks: RouteHooks
  readonly #out: PlainReply
  #splitter: EventSplitter | null = null
  /** A hook is at work: what comes is held. */
  #isBusy = false
  #held: Buffer[] = []
  #heldBytes = 0
  #hasEnded = false
  #isOver = false
  #isWriterWaiting = false
  /** The client has not taken what was written last. */
  #isClientSlow = false
  #failure: { readonly error: unknown } | null = null

  constructor(ctx: RequestContext, hooks: RouteHooks, out: PlainReply) {
    this.#ctx = ctx
    this.#hooks = hooks
    this.#out = out
  }

  /** The whole reply at once. The body's memory may be used again after the call. */
  sendWhole(
    status: number,
    contentType: string | null,
    headers: ReplyHeaders | null,
    body: string | Buffer,
  ): void {
    const { onResponse, maxReplyBytes } = this.#hooks
    if (onResponse === null) {
      this.#out.writeWhole(status, contentType, headers, body)
      return
    }
    if (this.#isBusy) return
    const list: HeaderList = headers === null ? [] : [...headers]
    if (contentType !== null) list.push('content-type', contentType)
    // A hook may keep what it is shown; the caller may use its memory again.
    const shown = Buffer.byteLength(body) <= maxReplyBytes ? Buffer.from(body as Buffer) : null
    const response: IncomingResponse = { status, headers: list, body: shown }
    const pending = this.#runOnResponse(onResponse, response)
    if (pending === undefined) {
      this.#out.writeWhole(response.status, null, response.headers, response.body ?? body)
      return
    }
    const kept = shown ?? Buffer.from(body as Buffer)
    this.#await(pending, () => {
      this.#out.writeWhole(response.status, null, response.headers, response.body ?? kept)
    })
  }

  startStream(status: number, headers: HeaderList, isEventStream: boolean): void {
    if (isEventStream && this.#hooks.onEvents !== null) this.#splitter = new EventSplitter()
    const { onResponse } = this.#hooks
    if (onResponse === null) {
      this.#out.openStream(status, headers, isEventStream)
      return
    }
    const response: IncomingResponse = { status, headers, body: null }
    const pending = this.#runOnResponse(onResponse, response)
    const open = () => this.#out.openStream(response.status, response.headers, isEventStream)
    if (pending === undefined) open()
    else this.#await(pending, open)
  }

  /** @returns false: wait for the drain */
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

  /** Keeps an error until what is held has gone out. @returns false when nothing is held back */
  failWhenReady(error: unknown): boolean {
    if (!this.#isBusy || this.#isOver) return false
    this.#failure ??= { error }
    return true
  }

  /** The request has failed or is done: nothing more is written from here. */
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
    this.#out.resumeWriter()
  }

  /** Sends one piece through the hooks. */
  #take(chunk: Buffer): void {
    const { onEvents } = this.#hooks
    if (this.#splitter === null || onEvents === null) {
      this.#write(chunk)
      return
    }
    const events = this.#splitter.push(chunk)
    if (events.length > 0) this.#transform(onEvents, events, false)
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
    const { onChunk } = this.#hooks
    try {
      const changed = onChunk === null || chunk.length === 0 ? chunk : onChunk(this.#ctx, chunk)
      this.#isClientSlow = !this.#out.writeChunk(changed)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Holds everything back until a hook has answered. */
  #await<T>(pending: Promise<T>, then: (result: T) => unknown): void {
    this.#isBusy = true
    pending
      .then((result) => {
        this.#isBusy = false
        if (this.#isOver || this.#out.isDone) return
        then(result)
        this.#goOn()
      })
      .catch((error: unknown) => this.#fail(error))
  }

  /** What was held goes on, until a hook takes its time again. */
  #goOn(): void {
    while (this.#held.length > 0 && !this.#isBusy && !this.#isOver) {
      // In one piece: fewer calls of the hooks and fewer writes.
      const chunk = this.#held.length === 1 ? this.#held[0] : Buffer.concat(this.#held)
      this.#held = []
      this.#heldBytes = 0
      this.#take(chunk)
    }
    if (this.#isBusy || this.#isOver || this.#out.isDone) return
    if (this.#failure !== null) this.#fail(this.#failure.error)
    else if (this.#hasEnded) this.#finish()
    else this.#resumeWriter()
  }

  /**
   * An event that the worker never ended, the hooks' last word, and the end. The event gets the end that it lacks and is
   * shown like any other: some clients read events by the line, and none may see what no hook saw.
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
    this.#out.closeStream()
  }

  /** What a hook throws is this request's error, not the thread's end. */
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
    this.#out.failHooked(error)
  }
}

function withEnd(event: Buffer): Buffer {
  // After a CR a LF would only make it one line end with it.
  return Buffer.concat([event, event[event.length - 1] === LF ? LINE_END : EVENT_END])
}
