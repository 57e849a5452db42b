/** Collects one whole answer for routes that rebuild it; the way to it is the relay's. */
import type { Call, CallHandler, OpenCall } from '../contracts/call.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import { type HeaderList, UpstreamFailure, type UpstreamRequest } from '../contracts/transport.ts'
import type { RelayOptions } from '../contracts/upstream.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { WorkerReply } from '../contracts/worker-reply.ts'
import type { CallParts } from './call-parts.ts'
import { CallRun } from './call-run.ts'
import { ANY_MODEL } from './relay.ts'
import { upstreamErrors } from './upstream-errors.ts'
import { toWorkerReply } from './worker-reply.ts'
import { canonicalBody, toWorkerRequest } from './worker-request.ts'

/** Longer answers of a route that rebuilds them are refused. */
const MAX_COLLECTED_BYTES = 67_108_864

/**
 * Opens the call and reads its whole answer.
 *
 * @throws what no attempt could mend; UpstreamFailure when the client leaves or the request is failed meanwhile, so that
 * the handler comes to its end
 */
export function collect(call: Call, parts: CallParts): Promise<WorkerReply> {
  const { ctx } = call
  if (ctx.isAborted) return Promise.reject(notWanted())
  return new Promise((resolve, reject) => {
    const handler = new WholeReply(resolve, reject)
    const run = new CallRun(call, handler, parts.balance.canonicalModel(call.model ?? ANY_MODEL), parts)
    handler.call = run
    ctx.onCancel(() => {
      run.abort()
      reject(notWanted())
    })
    if (!run.isOver) run.begin()
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
export class CollectedRequest implements Call {
  readonly ctx: RelayContext
  readonly model: string | null
  readonly stream: boolean
  readonly worker: WorkerEntry | null
  readonly tokenIds = null
  readonly accepts = null
  readonly promptBytes = null
  readonly #options: RelayOptions
  readonly #parts: CallParts

  constructor(ctx: RelayContext, options: RelayOptions, parts: CallParts) {
    this.ctx = ctx
    this.model = options.model === undefined ? ctx.peek().model : options.model
    this.stream = options.stream === undefined ? ctx.peek().stream : options.stream
    this.worker = options.worker ?? null
    this.#options = options
    this.#parts = parts
  }

  requestFor(worker: WorkerEntry, model: string): UpstreamRequest {
    const { ctx } = this
    // The handler may answer before the worker has, so the body's memory must not be used again by then.
    const body = canonicalBody(ctx, this.model, model, ctx.bodyBytes)
    return toWorkerRequest(ctx, this.#options, this.#parts.outgoing, worker, body)
  }
}

/** The failure of an answer that nobody waits for any more; its reply goes nowhere. */
function notWanted(): UpstreamFailure {
  return new UpstreamFailure('reset', 'the request was over before the answer', false)
}
