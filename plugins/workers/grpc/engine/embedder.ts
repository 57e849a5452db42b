/** Embeds texts on gRPC workers, a few at a time, in the order of the inputs. */
import {
  type Call,
  type CallHandler,
  type EmbeddingInput,
  type EmbeddingService,
  type EmbeddingVector,
  type OpenCall,
  type RequestContext,
  type Upstream,
  UpstreamFailure,
  type WorkerEntry,
} from '#kernel'
import { fanOut } from '#shared'
import { grpcErrors } from '../errors.ts'
import type { Runtime } from '../runtimes/runtime.ts'
import { findRuntime } from '../runtimes/runtime-table.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import type { SentRequests } from '../wire/sent-requests.ts'
import type { PromptBuilder } from './prompt.ts'

interface EmbedParts {
  readonly upstream: Pick<Upstream, 'open' | 'headersFor'>
  readonly calls: SentRequests
}

interface EmbedInput extends Pick<Call, 'ctx'> {
  readonly model: string
  readonly tokenIds: Uint32Array
  readonly text: string
  /** Request id for the engine; each attempt gets a suffix. */
  readonly id: string
}

class EmbedCall implements Call, CallHandler {
  readonly ctx: Call['ctx']
  readonly model: string
  readonly stream = false
  readonly worker = null
  readonly tokenIds: Uint32Array
  readonly promptBytes = null
  readonly accepts = (worker: WorkerEntry) => worker.connectionMode === GRPC_MODE
  readonly #input: EmbedInput
  readonly #parts: EmbedParts
  readonly #open: OpenCall
  readonly #settle = Promise.withResolvers<EmbeddingVector>()
  /** Of the current attempt. */
  #served: { readonly worker: WorkerEntry; readonly embed: NonNullable<Runtime['embed']> } | null = null
  #message: Buffer | null = null

  constructor(input: EmbedInput, parts: EmbedParts) {
    this.ctx = input.ctx
    this.model = input.model
    this.tokenIds = input.tokenIds
    this.#input = input
    this.#parts = parts
    this.#open = parts.upstream.open(this, this)
  }

  get result(): Promise<EmbeddingVector> {
    return this.#settle.promise
  }

  requestFor(worker: WorkerEntry, _model: string, attempt: number) {
    const runtime = findRuntime(worker.runtimeType)
    if (runtime?.embed === undefined || runtime.paths.Embed === undefined)
      throw grpcErrors.unsupported_backend(worker.runtimeType)
    this.#served = { worker, embed: runtime.embed }
    const id = `${this.#input.id}-${attempt}`
    const body = runtime.embed.encode(id, this.tokenIds, this.#input.text)
    this.#parts.calls.note(body, runtime, id, null)
    const headers = this.#parts.upstream.headersFor(this.ctx, worker)
    return { method: 'POST', path: runtime.paths.Embed, body, headers }
  }

  abort(): void {
    this.#open.abort()
    this.#settle.reject(cancelled())
  }

  onHead(): void {
    this.#message = null
  }

  onData(message: Buffer): void {
    this.#message = Buffer.from(message)
  }

  onEnd(): void {
    try {
      if (this.#served === null || this.#message === null) throw new Error('the engine sent no message')
      const { worker, embed } = this.#served
      const read = embed.read(this.#message)
      const promptTokens = read.promptTokens || this.tokenIds.length
      this.#open.used({ input: promptTokens, output: 0, cached: 0, reasoning: 0 })
      this.#settle.resolve({ values: read.values, promptTokens, worker })
    } catch (error) {
      this.onFailed(grpcErrors.engine_message_unreadable.with({ cause: error }, (error as Error).message))
    }
  }

  onFailed(error: unknown): void {
    this.#settle.reject(error)
  }
}

/** Concurrent inputs of one request. */
const MAX_PARALLEL = 32

export class Embedder implements EmbeddingService {
  readonly #prompts: Pick<PromptBuilder, 'tokenizerOf' | 'checkTakesText'>
  readonly #parts: EmbedParts

  constructor(prompts: Pick<PromptBuilder, 'tokenizerOf' | 'checkTakesText'>, parts: EmbedParts) {
    this.#prompts = prompts
    this.#parts = parts
  }

  async embed(
    ctx: RequestContext,
    { model, inputs }: { readonly model: string; readonly inputs: readonly EmbeddingInput[] },
  ): Promise<readonly EmbeddingVector[]> {
    const tokenizer = await this.#prompts.tokenizerOf(model)
    this.#prompts.checkTakesText(model, tokenizer, 'embeddings')
    const running = new Set<EmbedCall>()
    let isOver = false
    const stop = () => {
      isOver = true
      for (const call of running) call.abort()
    }
    ctx.onCancel(stop)
    const embedOne = async (input: EmbeddingInput, place: number): Promise<EmbeddingVector> => {
      if (isOver) throw cancelled()
      const text = typeof input === 'string' ? input : ''
      // Embedding models expect special tokens.
      const tokenIds =
        typeof input === 'string' ? await tokenizer.encode(input, { addSpecialTokens: true }) : input
      if (isOver) throw cancelled()
      const id = `embed-${ctx.requestId}-${place}`
      const call = new EmbedCall({ ctx: ctx as Call['ctx'], model, tokenIds, text, id }, this.#parts)
      running.add(call)
      try {
        return await call.result
      } finally {
        running.delete(call)
      }
    }
    try {
      return await fanOut(inputs, MAX_PARALLEL, embedOne)
    } finally {
      stop()
    }
  }
}

function cancelled(): UpstreamFailure {
  return new UpstreamFailure('reset', 'the request was cancelled', false)
}
