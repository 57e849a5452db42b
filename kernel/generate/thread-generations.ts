/** The generation layer on one thread: adapters, and the ways in. */
import type { EngineAdapter, GenerateOptions, Generation, GenerationEvent } from '../contracts/generation.ts'
import type { GenerationRequest } from '../contracts/generation-request.ts'
import type { GeneratedAnswer, Generations } from '../contracts/generations.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import { UpstreamFailure } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { ThreadUpstream } from '../upstream/thread-upstream.ts'
import { AnswerBuilder } from './answer-builder.ts'
import { Engines } from './engines.ts'
import { type GenerationParts, GenerationRun } from './generation-run.ts'

export class ThreadGenerations implements Generations {
  readonly #parts: GenerationParts

  constructor(upstream: ThreadUpstream) {
    this.#parts = { upstream, engines: new Engines(upstream.balance) }
  }

  addEngine(adapter: EngineAdapter): void {
    this.#parts.engines.add(adapter)
  }

  onWorkersChanged(): void {
    this.#parts.engines.onWorkersChanged()
  }

  open(ctx: RelayContext, request: GenerationRequest, options: GenerateOptions): Generation {
    const run = new GenerationRun(ctx, request, options, this.#parts)
    run.start()
    return run
  }

  collect(
    ctx: RelayContext,
    request: GenerationRequest,
    options: Parameters<Generations['collect']>[2] = {},
  ): Promise<GeneratedAnswer> {
    const builder = new AnswerBuilder()
    return new Promise((resolve, reject) => {
      const onEvent = (event: GenerationEvent) => {
        options.listener?.onEvent(event)
        if (event.type === 'failed') reject(event.error)
        else {
          builder.add(event)
          if (event.type === 'finished') resolve(builder.answer())
        }
      }
      ctx.onCancel(() =>
        reject(new UpstreamFailure('reset', 'the request was over before the answer', false)),
      )
      this.open(ctx, request, { ...options, stream: options.stream ?? false, listener: { onEvent } })
    })
  }

  isNative(model: string | null, api: string): boolean {
    const { upstream } = this.#parts
    return upstream.balance.takesApi(upstream.canonicalModel(model), api)
  }

  canGenerate(worker: WorkerEntry): boolean {
    return this.#parts.engines.of(worker) !== null
  }
}
