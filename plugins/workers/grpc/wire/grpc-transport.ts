/** The transport of gRPC workers: the path is the method, the body is the message. */
import {
  type Exchange,
  messageOf,
  type Transport,
  UpstreamFailure,
  type UpstreamHandler,
  type UpstreamLimits,
  type UpstreamRequest,
  type WorkerEntry,
} from '#kernel'
import { failedExchange } from '#shared'
import { GrpcExchange } from './grpc-exchange.ts'
import type { H2Connections } from './h2-connections.ts'
import type { SentRequests } from './sent-requests.ts'

export const GRPC_MODE = 'grpc'

const EMPTY = Buffer.alloc(0)

export class GrpcTransport implements Transport {
  readonly mode = GRPC_MODE
  readonly #connections: H2Connections
  readonly #calls: SentRequests

  constructor(connections: H2Connections, calls: SentRequests) {
    this.#connections = connections
    this.#calls = calls
  }

  open(
    worker: WorkerEntry,
    { path, headers, body }: UpstreamRequest,
    limits: UpstreamLimits,
    handler: UpstreamHandler,
  ): Exchange {
    try {
      const maxMessageBytes = Math.min(this.#connections.maxMessageBytes, this.#calls.responseLimitOf(body))
      const abortCall = this.#calls.abortOf(body)
      const plan = { path, headers, body: body ?? EMPTY, abortCall, maxMessageBytes }
      const exchange = new GrpcExchange(this.#connections.of(worker), plan, limits, handler)
      exchange.start()
      return exchange
    } catch (error) {
      const failure = new UpstreamFailure('connect', messageOf(error), false, { cause: error })
      return failedExchange(handler, failure)
    }
  }

  onWorkersChanged(workers: readonly WorkerEntry[]): void {
    this.#connections.keepOnly(workers.filter(({ connectionMode }) => connectionMode === GRPC_MODE))
  }

  close(): void {
    this.#connections.close()
  }
}
