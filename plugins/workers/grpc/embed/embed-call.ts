/** One text to one vector: a call with one message back. */
import type { EmbeddingVector } from '#kernel'
import { type Call, type OpenCall, type Upstream, UpstreamFailure, type WorkerEntry } from '#kernel'
import { grpcErrors } from '../errors.ts'
import type { Runtime } from '../runtimes/runtime.ts'
import { findRuntime } from '../runtimes/runtime-table.ts'
import type { EngineCalls } from '../wire/engine-calls.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'

export interface EmbedAsk {
  readonly ctx: Call['ctx']
  readonly model: string
  readonly tokenIds: Uint32Array
  readonly text: string
  /** A name for the engine; each attempt adds to it. */
  readonly id: string
}

export interface EmbedParts {
  readonly upstream: Pick<Upstream, 'open' | 'headersFor'>
  readonly calls: EngineCalls
}

export class EmbedCall implements Call {
  readonly ctx: Call['ctx']
  readonly model: string
  readonly stream = false
  readonly worker = null
  readonly tokenIds: Uint32Array
  readonly promptBytes = null
  readonly accepts = (worker: WorkerEntry) => worker.connectionMode === GRPC_MODE
  readonly result: Promise<EmbeddingVector>
  readonly #ask: EmbedAsk
  readonly #parts: EmbedParts
  readonly #open: OpenCall
  #worker: WorkerEntry | null = null
  #message: Buffer | null = null
  readonly #settle: PromiseWithResolvers<EmbeddingVector>

  constructor(ask: EmbedAsk, parts: EmbedParts) {
    this.ctx = ask.ctx
    this.model = ask.model
    this.tokenIds = ask.tokenIds
    this.#ask = ask
    this.#parts = parts
    this.#settle = Promise.withResolvers()
    this.result = this.#settle.promise
    this.#open = parts.upstream.open(this, {
      onAnswer: () => {
        this.#message = null
      },
      onData: (message) => {
        this.#message = Buffer.from(message)
      },
      onEnd: () => this.#read(),
      onFailed: (error) => this.#settle.reject(error),
    })
  }

  requestFor(worker: WorkerEntry, _model: string, attempt: number) {
    const runtime = findRuntime(worker.runtimeType)
    if (runtime?.encodeEmbed === undefined || runtime.paths.embed === undefined)
      throw grpcErrors.unsupported_backend(worker.runtimeType)
    this.#worker = worker
    const id = `${this.#ask.id}-${attempt}`
    const body = runtime.encodeEmbed(id, this.#ask.tokenIds, this.#ask.text)
    this.#parts.calls.note(body, { path: runtime.paths.abort, body: runtime.encodeAbort(id) })
    const headers = this.#parts.upstream.headersFor(this.ctx, worker)
    return { method: 'POST', path: runtime.paths.embed, body, headers }
  }

  /** Nobody waits for it any more. */
  abort(): void {
    this.#open.abort()
    this.#settle.reject(new UpstreamFailure('reset', 'the request was over before the answer', false))
  }

  #read(): void {
    try {
      this.#settle.resolve(this.#vector(this.#worker as WorkerEntry))
    } catch (error) {
      this.#settle.reject(
        grpcErrors.engine_message_unreadable.with({ cause: error }, (error as Error).message),
      )
    }
  }

  #vector(worker: WorkerEntry): EmbeddingVector {
    const runtime = findRuntime(worker.runtimeType) as Runtime
    if (this.#message === null) throw new Error('the engine answered nothing')
    const read = runtime.readEmbed?.(this.#message)
    if (read === undefined) throw new Error('the engine has no vectors')
    return { values: read.values, promptTokens: read.promptTokens || this.tokenIds.length, worker }
  }
}
