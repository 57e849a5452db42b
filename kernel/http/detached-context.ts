/** A request without a client: what it replies is kept for whoever began it. */
import type { HttpResponse } from 'uWebSockets.js'
import type { Detached, DetachedOutcome, DetachedWork } from '../contracts/detached.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { HttpContext } from './context.ts'
import { makeRequestId } from './request-id.ts'
import type { ServerParts } from './server-parts.ts'
import type { ReplyPort } from './socket-reply.ts'

/** Of its reply, this much is kept. */
const MAX_KEPT_BYTES = 1_048_576
const NO_BYTES = new ArrayBuffer(0)
const NO_BODY = Buffer.alloc(0)

/** Takes what a reply writer writes; nobody is slow, and nobody leaves but by `abort`. */
class KeptReply {
  readonly #chunks: Buffer[] = []
  #byteCount = 0
  #onAborted: (() => void) | null = null

  /** As the reply writer takes it. */
  get port(): HttpResponse {
    return this satisfies ReplyPort as unknown as HttpResponse
  }

  get body(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  abort(): void {
    const listener = this.#onAborted
    this.#onAborted = null
    listener?.()
  }

  cork(write: () => void): HttpResponse {
    write()
    return this.port
  }

  writeStatus(): HttpResponse {
    return this.port
  }

  writeHeader(): HttpResponse {
    return this.port
  }

  write(chunk: unknown): boolean {
    this.#keep(chunk as string | Buffer)
    return true
  }

  end(last?: unknown): HttpResponse {
    if (last !== undefined) this.#keep(last as string | Buffer)
    return this.port
  }

  endWithoutBody(): HttpResponse {
    return this.port
  }

  tryEnd(body: unknown): [boolean, boolean] {
    this.#keep(body as string | Buffer)
    return [true, true]
  }

  onWritable(): HttpResponse {
    return this.port
  }

  onAborted(handler: () => void): HttpResponse {
    this.#onAborted = handler
    return this.port
  }

  close(): HttpResponse {
    this.abort()
    return this.port
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return NO_BYTES
  }

  #keep(chunk: string | Buffer): void {
    if (this.#byteCount >= MAX_KEPT_BYTES) return
    const bytes = Buffer.from(chunk as string).subarray(0, MAX_KEPT_BYTES - this.#byteCount)
    this.#byteCount += bytes.length
    this.#chunks.push(bytes)
  }
}

export class DetachedContext extends HttpContext implements Detached {
  readonly done: Promise<DetachedOutcome>
  readonly #reply: KeptReply
  readonly #resolve: (outcome: DetachedOutcome) => void

  /**
   * @param route whose hooks hold; its handler is the work's `run`
   * @param metrics where it is counted; null when metrics are off
   */
  constructor(
    server: ServerParts,
    route: CompiledRoute,
    metrics: CompiledRoute['metrics'],
    work: DetachedWork,
  ) {
    const reply = new KeptReply()
    const headers = work.headers ?? []
    const { promise, resolve } = Promise.withResolvers<DetachedOutcome>()
    const { definition } = route
    super(
      server,
      { ...route, metrics, definition: { ...definition, handler: work.run } },
      reply.port,
      definition.method,
      definition.path,
      '',
      [],
      { kept: [...headers], forwarded: [], contentLength: -1, requestId: '', problem: null },
      work.requestId ?? makeRequestId(route.requestIdPrefix),
    )
    this.#reply = reply
    this.done = promise
    this.#resolve = resolve
    this.identity = work.identity
    this.isAdmitted = true
    this.hasBody = true
    this.takeBody(work.body ?? NO_BODY, null)
  }

  override get clientAddress(): string {
    return ''
  }

  cancel(): void {
    this.#reply.abort()
  }

  protected override finished(): void {
    super.finished()
    this.#resolve({ status: this.status, errorCode: this.errorCode, body: this.#reply.body })
  }
}
