/** Collects one whole answer for routes that rebuild it; the rest of the exchange is as in the relay. */
import type { Attempt } from '../balance/worker-balance.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import {
  type Exchange,
  type HeaderList,
  type Transport,
  UpstreamFailure,
  type UpstreamHandler,
  type UpstreamLimits,
  type UpstreamRequest,
} from '../contracts/transport.ts'
import type { FailureListener } from './relay.ts'
import type { RelayMeter } from './relay-meter.ts'
import type { WorkerReply } from './upstream.ts'
import { toUpstreamError, upstreamErrors } from './upstream-errors.ts'
import { toWorkerReply } from './worker-reply.ts'

/** Longer answers of a route that rebuilds them are refused. */
const MAX_COLLECTED_BYTES = 67_108_864

/** The failure of an answer that nobody waits for any more; its reply goes nowhere. */
export function clientLeft(): UpstreamFailure {
  return new UpstreamFailure('reset', 'the client left before the answer', false)
}

export class Collector implements UpstreamHandler {
  readonly #ctx: RelayContext
  readonly #attempt: Attempt
  readonly #meter: RelayMeter | null
  readonly #onFailure: FailureListener
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #isOver = false
  #status = 0
  #headers: HeaderList = []
  #exchange: Exchange | null = null
  #resolve: (reply: WorkerReply) => void = () => {}
  #reject: (error: unknown) => void = () => {}

  constructor(ctx: RelayContext, attempt: Attempt, meter: RelayMeter | null, onFailure: FailureListener) {
    this.#ctx = ctx
    this.#attempt = attempt
    this.#meter = meter
    this.#onFailure = onFailure
    ctx.workerUrl = attempt.worker.url
  }

  /** @throws UpstreamFailure when the client leaves, so that the handler comes to its end */
  run(transport: Transport, request: UpstreamRequest, limits: UpstreamLimits): Promise<WorkerReply> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#exchange = transport.send(this.#attempt.worker, request, limits, this)
      this.#ctx.onAbort(() => {
        this.#exchange?.abort()
        this.#over(0)
        reject(clientLeft())
      })
    })
  }

  onResponseStart(status: number, headers: HeaderList): void {
    this.#status = status
    this.#headers = headers
    this.#meter?.answered(status)
  }

  onResponseData(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > MAX_COLLECTED_BYTES) {
      this.#exchange?.abort()
      this.#over(502)
      this.#reject(upstreamErrors.read_response_body_failed('it is too long'))
      return
    }
    this.#chunks.push(Buffer.from(chunk))
  }

  onResponseEnd(): void {
    this.#over(this.#status)
    this.#resolve(toWorkerReply(this.#status, this.#headers, Buffer.concat(this.#chunks)))
  }

  onResponseError(failure: UpstreamFailure): void {
    this.#meter?.failed(failure, this.#status)
    this.#onFailure(this.#ctx, this.#attempt, failure)
    const error = toUpstreamError(failure, this.#status !== 0)
    this.#over(error.status)
    this.#reject(error)
  }

  /** The attempt leaves the in-flight count, exactly once. */
  #over(status: number): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#attempt.release()
    this.#meter?.done(this.#ctx, status)
  }
}
