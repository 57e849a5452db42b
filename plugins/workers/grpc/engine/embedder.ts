/** Embeds texts on gRPC workers, a few at a time, in the order of the inputs. */
import {
  type Call,
  type EmbeddingInput,
  type EmbeddingService,
  type EmbeddingVector,
  editTexts,
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

interface EmbedCall {
  readonly result: Promise<EmbeddingVector>
  abort(): void
}

function openEmbedCall({ ctx, model, tokenIds, text, id }: EmbedInput, parts: EmbedParts): EmbedCall {
  const { promise, resolve, reject } = Promise.withResolvers<EmbeddingVector>()
  /** Of the current attempt. */
  let served: { readonly worker: WorkerEntry; readonly embed: NonNullable<Runtime['embed']> } | null = null
  let message: Buffer | null = null
  const call: Call = {
    ctx,
    model,
    tokenIds,
    stream: false,
    worker: null,
    promptBytes: null,
    accepts: (worker) => worker.connectionMode === GRPC_MODE,
    requestFor(worker, _model, attempt) {
      const runtime = findRuntime(worker.runtimeType)
      if (runtime?.embed === undefined || runtime.paths.Embed === undefined)
        throw grpcErrors.unsupported_backend(worker.runtimeType)
      served = { worker, embed: runtime.embed }
      const attemptId = `${id}-${attempt}`
      const body = runtime.embed.encode(attemptId, tokenIds, text)
      parts.calls.note(body, runtime, attemptId, null)
      return {
        method: 'POST',
        path: runtime.paths.Embed,
        body,
        headers: parts.upstream.headersFor(ctx, worker),
      }
    },
  }
  const open = parts.upstream.open(call, {
    onHead() {
      message = null
    },
    onData(bytes) {
      message = Buffer.from(bytes)
    },
    onEnd() {
      try {
        if (served === null || message === null) throw new Error('the engine sent no message')
        const read = served.embed.read(message)
        const promptTokens = read.promptTokens || tokenIds.length
        open.used({ input: promptTokens, output: 0, cached: 0, reasoning: 0 })
        resolve({ values: read.values, promptTokens, worker: served.worker })
      } catch (error) {
        reject(grpcErrors.engine_message_unreadable.with({ cause: error }, (error as Error).message))
      }
    },
    onFailed: reject,
  })
  return {
    result: promise,
    abort() {
      open.abort()
      reject(cancelled())
    },
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
    const { input } = await editTexts(ctx as Call['ctx'], { input: inputs })
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
      const call = openEmbedCall({ ctx: ctx as Call['ctx'], model, tokenIds, text, id }, this.#parts)
      running.add(call)
      try {
        return await call.result
      } finally {
        running.delete(call)
      }
    }
    try {
      return await fanOut(input, MAX_PARALLEL, embedOne)
    } finally {
      stop()
    }
  }
}

function cancelled(): UpstreamFailure {
  return new UpstreamFailure('reset', 'the request was cancelled', false)
}
