/** Collects one whole answer for routes that rebuild it: a handler of calls, as the relay is one. */

import type { WorkerReply } from '#kernel'
import {
  type Call,
  type CallHandler,
  type HeaderList,
  type OpenCall,
  type RelayContext,
  type RelayOptions,
  type RequestContext,
  type Upstream,
  UpstreamFailure,
  type UpstreamRequest,
  upstreamErrors,
  type WorkerEntry,
  withModel,
} from '#kernel'
import { toWorkerReply } from './worker-reply.ts'

/** Longer answers of a route that rebuilds them are refused. */
const MAX_COLLECTED_BYTES = 67_108_864

/** What collecting needs of the way to workers. */
export type CollectingUpstream = Pick<Upstream, 'open' | 'headersFor'>

/**
 * Like `Upstream.relay` up to the answer, which is collected instead of sent.
 *
 * @throws an upstream error (502, 504) or one of the choice (404, 503), which no attempt could mend; UpstreamFailure when
 * the client leaves or the request is failed meanwhile, so that the handler comes to its end
 */
export function collectReply(
  upstream: CollectingUpstream,
  ctx: RequestContext,
  options: RelayOptions,
): Promise<WorkerReply> {
  if (ctx.isAborted) return Promise.reject(notWanted())
  return new Promise((resolve, reject) => {
    const handler = new WholeReply(resolve, reject)
    // Whatever a route is given can be called with: there is one kind of request.
    const run = upstream.open(new CollectedRequest(upstream, ctx as RelayContext, options), handler)
    handler.call = run
    ctx.onCancel(() => {
      run.abort()
      reject(notWanted())
    })
  })
}

class WholeReply implements CallHandler {
  call: OpenCall | null = null
  readonly #resolve: (reply: WorkerReply) => void
  readonly #reject: (error: unknown) => void
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #status = 0
  #headers: HeaderList = []

  constructor(resolve: (reply: WorkerReply) => void, reject: (error: unknown) => void) {
    this.#resolve = resolve
    this.#reject = reject
  }

  onAnswer(status: number, headers: HeaderList): void {
    this.#status = status
    this.#headers = headers
  }

  onData(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > MAX_COLLECTED_BYTES)
      this.call?.fail(upstreamErrors.read_response_body_failed('it is too long'))
    else this.#chunks.push(Buffer.from(chunk))
  }

  onEnd(): void {
    this.#resolve(toWorkerReply(this.#status, this.#headers, Buffer.concat(this.#chunks)))
  }

  onFailed(error: unknown): void {
    this.#reject(error)
  }
}

/** A client's own request as a call whose answer is collected. */
class CollectedRequest implements Call {
  readonly ctx: RelayContext
  readonly model: string | null
  readonly stream: boolean
  readonly worker: WorkerEntry | null
  readonly tokenIds = null
  readonly accepts = null
  readonly promptBytes = null
  readonly #upstream: CollectingUpstream
  readonly #options: RelayOptions
  /** The handler may answer before the worker has, so its memory must not be used again by then. */
  readonly #body: Buffer

  constructor(upstream: CollectingUpstream, ctx: RelayContext, options: RelayOptions) {
    this.ctx = ctx
    this.model = options.model === undefined ? ctx.peek().model : options.model
    this.stream = options.stream === undefined ? ctx.peek().stream : options.stream
    this.worker = options.worker ?? null
    this.#upstream = upstream
    this.#options = options
    this.#body = ctx.bodyBytes
  }

  requestFor(worker: WorkerEntry, model: string): UpstreamRequest {
    const { ctx } = this
    const isAlias = this.model !== null && this.model !== model
    return {
      method: this.#options.method ?? 'POST',
      path: this.#options.path,
      headers: this.#upstream.headersFor(ctx, worker, this.#options.headers),
      body: isAlias ? withModel(this.#body, ctx.peek(), model) : this.#body,
    }
  }
}

/** The failure of an answer that nobody waits for any more; its reply goes nowhere. */
function notWanted(): UpstreamFailure {
  return new UpstreamFailure('reset', 'the request was over before the answer', false)
}
