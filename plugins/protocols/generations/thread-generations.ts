/** The service `Generations` of one thread. */
import {
  type EngineAdapter,
  type GeneratedAnswer,
  type GenerateOptions,
  type Generation,
  type GenerationEvent,
  type GenerationRequest,
  type Generations,
  type Prompt,
  type RelayContext,
  type RequestContext,
  type TextEditors,
  type Upstream,
  UpstreamFailure,
  type WorkerBalance,
  type WorkerEntry,
  workerControls,
} from '#kernel'
import { ignoredMembers } from '#shared'
import { AnswerBuilder } from './answer-builder.ts'
import { Engines } from './engines.ts'
import { type GenerationParts, GenerationRun } from './generation-run.ts'
import { hasTools, PassThroughDecision } from './pass-through.ts'

const ANY_MODEL = 'unknown'

export class ThreadGenerations implements Generations {
  readonly #parts: GenerationParts

  constructor(
    upstream: Upstream,
    balance: WorkerBalance,
    settings: Pick<GenerationParts, 'toolImages' | 'files' | 'counter'>,
  ) {
    const controls = workerControls(upstream)
    const quirksOf = (worker: WorkerEntry) =>
      controls.controlOf(worker.connectionMode)?.quirks?.(worker) ?? {}
    const passThrough = new PassThroughDecision(balance, quirksOf)
    this.#parts = { upstream, quirksOf, passThrough, engines: new Engines(balance), ...settings }
  }

  addEngine(adapter: EngineAdapter): void {
    this.#parts.engines.add(adapter)
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
      ctx.onCancel(() => reject(new UpstreamFailure('reset', 'the request ended before the answer', false)))
      this.open(ctx, request, { ...options, stream: options.stream ?? false, listener: { onEvent } })
    })
  }

  modelToGenerate(model: string | null, api: string, ctx?: RelayContext): string | null {
    const mustGenerate = ctx !== undefined && this.mustGenerate(ctx)
    if (model === null) return this.#modelOfAny(api, mustGenerate)
    if (mustGenerate) return model
    const { passThrough } = this.#parts
    const named = passThrough.modelToGenerate(model, api, ctx ?? null)
    // A generation warns of what it ignores.
    if (named === null && ctx !== undefined && passThrough.dropsTools(model) && hasTools(ctx))
      for (const warning of ignoredMembers(['tools'])) ctx.warn(warning)
    return named
  }

  /** Null if some worker takes the format; otherwise a model of one that completes texts if there is one. */
  #modelOfAny(api: string, mustGenerate: boolean): string | null {
    const { engines } = this.#parts
    const workers = engines.candidates(null)
    if (!mustGenerate && (workers.length === 0 || workers.some(({ apis }) => apis.includes(api)))) return null
    const [model] = (workers.find((worker) => this.#sends('text', worker)) ?? workers[0])?.models ?? []
    return model?.id ?? ANY_MODEL
  }

  ignored(request: GenerationRequest): readonly string[] {
    const { engines, passThrough } = this.#parts
    const names = new Set<string>()
    if (request.tools.length > 0 && passThrough.dropsTools(request.model)) names.add('tools')
    for (const worker of engines.candidates(request.model)) {
      const adapter = engines.of(worker, request.native?.engine)
      for (const name of adapter?.ignored?.(request, worker) ?? []) names.add(name)
    }
    return [...names]
  }

  textEditors(ctx: RelayContext): TextEditors | null {
    const { onText } = ctx.hooks
    return onText === null ? null : (stream) => onText(ctx, stream)
  }

  mustGenerate(ctx: RelayContext): boolean {
    return ctx.hooks.needsGenerations
  }

  isNative(model: string, api: string): boolean {
    return this.#parts.passThrough.isNative(model, api)
  }

  takes(worker: WorkerEntry, api: string, ctx: RequestContext): boolean {
    return this.#parts.passThrough.takes(worker, api, ctx)
  }

  gather(): AnswerBuilder {
    return new AnswerBuilder()
  }

  canGenerate(worker: WorkerEntry): boolean {
    return this.#sends('chat', worker)
  }

  #sends(kind: Prompt['kind'], worker: WorkerEntry): boolean {
    const adapter = this.#parts.engines.of(worker)
    return adapter !== null && adapter.promptKinds?.includes(kind) !== false
  }
}
