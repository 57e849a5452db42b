/** Collects one whole answer for routes that rebuild it; the rest of the exchange is as in the relay. */
import type { Attempt } from '../balance/worker-balance.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type {
  Exchange,
  HeaderList,
  Transport,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamLimits,
  UpstreamRequest,
} from '../contracts/transport.ts'
import type { RelayObserver } from './relay.ts'
import type { WorkerReply } from './upstream.ts'
import { toUpstreamError, upstreamErrors } from './upstream-errors.ts'
import { toWorkerReply } from './worker-reply.ts'

/** Longer answers of a route that rebuilds them are refused. */
const MAX_COLLECTED_BYTES = 67_108_864

export class Collector implements UpstreamHandler {
  readonly #ctx: RelayContext
  readonly #attempt: Attempt
  readonly #observer: RelayObserver
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #status = 0
  #headers: HeaderList = []
  #exchange: Exchange | null = null
  #resolve: (reply: WorkerReply) => void = () => {}
  #reject: (error: unknown) => void = () => {}

  constructor(ctx: RelayContext, attempt: Attempt, observer: RelayObserver) {
    this.#ctx = ctx
    this.#attempt = attempt
    this.#observer = observer
    ctx.workerUrl = attempt.worker.url
  }

  /** Never settles when the client left: nobody waits for the answer then. */
  run(transport: Transport, request: UpstreamRequest, limits: UpstreamLimits): Promise<WorkerReply> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#exchange = transport.send(this.#attempt.worker, request, limits, this)
      this.#ctx.onAbort(() => {
        this.#exchange?.abort()
        this.#attempt.release()
      })
    })
  }

  onResponseStart(status: number, headers: HeaderList): void {
    this.#status = status
    this.#headers = headers
    this.#observer.answered(this.#ctx, this.#attempt, status)
  }

  onResponseData(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > MAX_COLLECTED_BYTES) {
      this.#exchange?.abort()
      this.#attempt.release()
      this.#reject(upstreamErrors.read_response_body_failed('it is too long'))
      return
    }
    this.#chunks.push(Buffer.from(chunk))
  }

  onResponseEnd(): void {
    this.#attempt.release()
    this.#resolve(toWorkerReply(this.#status, this.#headers, Buffer.concat(this.#chunks)))
  }

  onResponseError(failure: UpstreamFailure): void {
    this.#attempt.release()
    this.#observer.failed(this.#ctx, this.#attempt, failure)
    this.#reject(toUpstreamError(failure, this.#status !== 0))
  }
}
