/**
 * Replies as handlers and the relay give them: straight to the writer beneath, or through the hooks of the route where
 * it has some for replies. @hot
 */
import type { RouteHooks } from '../contracts/hook.ts'
import type { ReplyHeaders, RequestContext, SseWriter } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { HookedReply, type PlainReply } from './hooked-reply.ts'
import { type ReplyPort, ReplyWriter } from './reply-writer.ts'
import type { CopiedHeaders } from './request-headers.ts'
import type { ServerParts } from './server-parts.ts'
import { ContextSseWriter } from './sse.ts'

const EMPTY = Buffer.alloc(0)
const EVENT_STREAM = 'text/event-stream'

export abstract class HookedWriter extends ReplyWriter implements PlainReply {
  /** As they were at arrival: hooks that are switched meanwhile do not meet half a request. */
  readonly hooks: RouteHooks
  /** The reply's way through hooks; null until it begins, and where the route has none for it. */
  #hooked: HookedReply | null = null
  #hasPlainReply: boolean

  constructor(
    server: ServerParts,
    hooks: RouteHooks,
    res: ReplyPort,
    method: string,
    headers: CopiedHeaders,
    requestId: string,
  ) {
    super(server, res, method, headers, requestId)
    this.hooks = hooks
    this.#hasPlainReply = hooks.onResponse === null && hooks.onEvents === null && hooks.onChunk === null
  }

  /** What hooks are shown. */
  protected abstract get request(): RequestContext

  abstract fail(error: unknown): void
  abstract failHooked(error: unknown): void

  json(status: number, value: unknown, headers?: ReplyHeaders): void {
    this.send(status, 'application/json', JSON.stringify(value), headers)
  }

  text(status: number, body: string, headers?: ReplyHeaders): void {
    this.send(status, 'text/plain; charset=utf-8', body, headers)
  }

  send(status: number, contentType: string | null, body: string | Buffer, headers?: ReplyHeaders): void {
    if (this.#hasPlainReply) this.writeWhole(status, contentType, headers ?? null, body)
    else if (!this.isDone) this.#throughHooks().sendWhole(status, contentType, headers ?? null, body)
  }

  sendWhole(status: number, headers: HeaderList, body: Buffer): void {
    if (this.#hasPlainReply) this.writeWhole(status, null, headers, body)
    else if (!this.isDone) this.#throughHooks().sendWhole(status, null, headers, body)
  }

  sse(status = 200, headers?: ReplyHeaders): SseWriter {
    const all = ['content-type', `${EVENT_STREAM}; charset=utf-8`, 'cache-control', 'no-cache']
    if (headers !== undefined) all.push(...headers)
    this.startStream(status, all, true)
    return new ContextSseWriter(this)
  }

  startStream(status: number, headers: HeaderList, isEventStream: boolean): void {
    if (this.#hasPlainReply) this.openStream(status, headers, isEventStream)
    else if (!this.isDone) this.#throughHooks().startStream(status, headers, isEventStream)
  }

  writeStream(chunk: Buffer | string): boolean {
    return this.#hasPlainReply || this.isDone
      ? this.writeChunk(chunk)
      : this.#throughHooks().writeStream(chunk)
  }

  endStream(last: Buffer | string = EMPTY): void {
    if (this.#hasPlainReply) this.closeStream(last)
    else if (!this.isDone) this.#throughHooks().endStream(last)
  }

  #throughHooks(): HookedReply {
    this.#hooked ??= new HookedReply(this.request, this.hooks, this)
    return this.#hooked
  }

  /** From now on no hook sees the reply: it was a hook that made it, or the one that failed. */
  bypassReplyHooks(): void {
    this.#hooked?.giveUp()
    this.#hasPlainReply = true
  }

  resumeWriter(): void {
    this.listener?.onClientDrain()
  }

  protected override clientDrained(): void {
    if (this.#hooked === null || this.#hasPlainReply) super.clientDrained()
    else this.#hooked.clientDrained()
  }

  /** Keeps an error until what the hooks hold of a stream has gone out. @returns false when nothing is held back */
  protected failsLater(error: unknown): boolean {
    return this.#hooked?.failWhenReady(error) === true
  }

  /** The hooks have begun on a reply that will not be sent. */
  protected dropHookedReply(): void {
    if (this.#hooked !== null) this.bypassReplyHooks()
  }

  protected override finished(): void {
    this.#hooked?.giveUp()
  }
}
