/** A request without a client: what it replies is kept for whoever began it. */
import type { Detached, DetachedOutcome, DetachedWork } from '../contracts/detached.ts'
import type { ReplyTaker } from '../contracts/reply-taker.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { makeRequestId } from './request-id.ts'
import type { ServerParts } from './server-parts.ts'
import { TakenContext } from './taken-context.ts'

/** Of its reply, this much is kept. */
const MAX_KEPT_BYTES = 1_048_576
const NO_BODY = Buffer.alloc(0)

/** Nobody is slow, and nobody leaves but by `cancel`. */
class KeptReply implements ReplyTaker {
  readonly #chunks: Buffer[] = []
  #byteCount = 0

  get body(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  onType(): void {}

  onData(chunk: string | Buffer): boolean {
    if (this.#byteCount >= MAX_KEPT_BYTES) return true
    const bytes = Buffer.from(chunk as string).subarray(0, MAX_KEPT_BYTES - this.#byteCount)
    this.#byteCount += bytes.length
    this.#chunks.push(bytes)
    return true
  }

  onEnd(): void {}

  onCut(): void {}
}

export class DetachedContext extends TakenContext implements Detached {
  readonly done: Promise<DetachedOutcome>
  readonly #kept: KeptReply
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
    const kept = new KeptReply()
    const headers = work.headers ?? []
    const { definition } = route
    super(server, { ...route, metrics, definition: { ...definition, handler: work.run } }, kept, {
      path: definition.path,
      query: '',
      pathValues: [],
      headers: { kept: [...headers], forwarded: [], contentLength: -1, requestId: '', problem: null },
      requestId: work.requestId ?? makeRequestId(route.requestIdPrefix),
      identity: work.identity,
      clientAddress: '',
      body: work.body ?? NO_BODY,
    })
    const { promise, resolve } = Promise.withResolvers<DetachedOutcome>()
    this.#kept = kept
    this.done = promise
    this.#resolve = resolve
  }

  protected override finished(): void {
    super.finished()
    this.#resolve({ status: this.status, errorCode: this.errorCode, body: this.#kept.body })
  }
}
