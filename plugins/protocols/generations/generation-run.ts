/**
 * One generation: sends the adapter's request to the picked worker and reads the answer into events, with the retries, limits
 * and counters of any call. A worker that takes the client's format gets the client's bytes instead. @hot
 */
import {
  type Call,
  type CallHandler,
  type EngineAdapter,
  type EngineAttempt,
  type EngineReader,
  type EngineSink,
  GatewayError,
  type GenerateOptions,
  type Generation,
  type GenerationAnswer,
  type GenerationEvent,
  type GenerationRequest,
  type GenerationUsage,
  type HeaderList,
  type HookSignatures,
  type JoinedRelay,
  type ModelParameters,
  messageOf,
  type NativeObject,
  type OpenCall,
  type OpeningGeneration,
  type PreparedPrompt,
  type RelayContext,
  type TokenUsage,
  type Upstream,
  type UpstreamFailure,
  type UpstreamRequest,
  type WorkerEntry,
} from '#kernel'
import { BodyExcerpt, isShortExtraContent, uuidV7 } from '#shared'
import { type Engines, type PreparedPrompts, preparePrompts } from './engines.ts'
import { generationErrors } from './errors.ts'
import { fitNames, hasNameLimits } from './fitted-names.ts'
import type { PassThroughDecision } from './pass-through.ts'
import { toRefusal } from './refusal.ts'
import type { StreamCounter } from './stream-counter.ts'
import { withTargetParameters } from './target-parameters.ts'
import { TextView } from './text-view.ts'
import { seesImages, type ToolImages, withToolImages } from './tool-images.ts'
import { UnreportedStream } from './unreported-stream.ts'

/** Bytes of an error body that are read for its message. */
const MAX_REFUSAL_BYTES = 65_536

const NOTHING_PREPARED: PreparedPrompts['byAdapter'] = new Map()
const NO_NAMES: ReadonlyMap<string, string> = new Map()

export interface GenerationParts {
  readonly engines: Engines
  readonly upstream: Upstream
  readonly passThrough: PassThroughDecision
  readonly toolImages: ToolImages
  /** Null without tokenizers. */
  readonly counter: StreamCounter | null
}

class Attempt implements EngineAttempt {
  readonly request: GenerationRequest
  /** The client's names of functions by those that the worker got in their place. */
  readonly names: ReadonlyMap<string, string>
  readonly model: string
  readonly prepared: PreparedPrompt | null
  readonly worker: WorkerEntry
  readonly stream: boolean
  readonly ctx: RelayContext
  readonly adapter: EngineAdapter
  #id: string | null = null

  constructor(
    run: { request: GenerationRequest; stream: boolean; ctx: RelayContext },
    adapter: EngineAdapter,
    prepared: PreparedPrompt | null,
    worker: WorkerEntry,
    model: string,
  ) {
    const fitted = hasNameLimits(worker, adapter) ? fitNames(run.request) : null
    this.request = fitted?.request ?? run.request
    this.names = fitted?.names ?? NO_NAMES
    this.stream = run.stream
    this.ctx = run.ctx
    this.adapter = adapter
    this.prepared = prepared
    this.worker = worker
    this.model = model
  }

  get id(): string {
    this.#id ??= `${this.ctx.requestId}-${uuidV7()}`
    return this.#id
  }
}

/** A function of `OpeningGeneration.mapEvents`. */
type EventMap = Parameters<OpeningGeneration['mapEvents']>[0]

export class GenerationRun implements Generation, Call, CallHandler, EngineSink {
  readonly ctx: RelayContext
  request: GenerationRequest
  readonly stream: boolean
  readonly worker = null
  readonly promptBytes = null
  tokenIds: Uint32Array | null = null
  readonly #options: GenerateOptions
  readonly #parts: GenerationParts
  #prepared: PreparedPrompts['byAdapter'] = NOTHING_PREPARED
  /** The request with the parameters of the current target. */
  #current: GenerationRequest
  #call: OpenCall | null = null
  #attempt: Attempt | null = null
  /** Receives the response in place of the adapter's reader if the bytes pass through; null otherwise. */
  #relay: JoinedRelay | null = null
  #reader: EngineReader | null = null
  #refusal: BodyExcerpt | null = null
  #refusalHeaders: HeaderList = []
  /** Null if usage is not counted, and for responses that are not streamed. */
  #unreported: UnreportedStream | null = null
  /** Null without such hooks. */
  #maps: readonly EventMap[] | null = null
  #view: TextView | null = null
  #hasEmitted = false
  #hasFinished = false
  #isOver = false
  #isPaused = false
  /** Text waits for an editor. */
  #isEditing = false
  /** Rest of the reader's work for a large chunk; the upstream is paused until it is done. */
  #deferred: (() => void) | null = null

  constructor(
    ctx: RelayContext,
    request: GenerationRequest,
    options: GenerateOptions,
    parts: GenerationParts,
  ) {
    this.ctx = ctx
    this.request = request
    this.#current = request
    this.stream = options.stream
    this.#options = options
    this.#parts = parts
    const { onText } = ctx.hooks
    if (onText !== null)
      this.#view = new TextView({
        ctx,
        onText,
        deliver: (event) => options.listener.onEvent(event),
        onError: (error) => this.#editFailed(error),
        onFull: (isFull) => this.#pauseForEdits(isFull),
      })
  }

  get model(): string | null {
    return this.request.model
  }

  /** Never throws. */
  start(): void {
    const { ctx } = this
    ctx.onCancel(() => this.abort())
    if (this.#isOver) return
    try {
      ctx.generationCount++
      const { onGeneration } = ctx.hooks
      if (onGeneration === null) this.#begin()
      else this.#askHooks(onGeneration)
    } catch (error) {
      process.nextTick(() => this.#failed(error))
    }
  }

  #askHooks(onGeneration: NonNullable<HookSignatures['onGeneration']>): void {
    const maps: EventMap[] = []
    const { ctx, model, stream, request } = this
    const opening: OpeningGeneration = {
      number: ctx.generationCount,
      model,
      stream,
      request,
      mapEvents: (map) => {
        maps.push(map)
      },
    }
    const goOn = (answer: GenerationAnswer | undefined | void) => {
      if (this.#isOver) return
      if (maps.length > 0) this.#maps = maps
      if (opening.request !== request) this.#replaceRequest(opening.request)
      if (answer) setImmediate(() => this.#replay(answer))
      else this.#begin()
    }
    const pending = onGeneration(ctx, opening)
    if (pending instanceof Promise) pending.then(goOn).catch((error: unknown) => this.#failed(error))
    else goOn(pending)
  }

  #replaceRequest(request: GenerationRequest): void {
    const isSamePrompt = request.prompt === this.request.prompt
    // The client's own form of the prompt would be sent in place of the changed one.
    const { native, ...others } = request
    this.request = isSamePrompt || native !== this.request.native ? request : others
    this.#current = this.request
  }

  #replay(answer: GenerationAnswer): void {
    try {
      for (const event of answer) {
        if (event.type === 'failed') this.#failed(event.error)
        else this.emit(event)
      }
    } catch (error) {
      this.#failed(error)
    }
    this.#failed(generationErrors.generation_cut_off())
  }

  #begin(): void {
    if (this.#isOver) return
    const { upstream } = this.#parts
    const { model } = this.request
    const pending = upstream.isVirtual(model) ? null : this.prepareFor(upstream.canonicalModel(model), null)
    if (pending === null) this.#open()
    else
      pending.then(
        () => {
          if (!this.#isOver) this.#open()
        },
        (error: unknown) => this.#failed(error),
      )
  }

  prepareFor(model: string, parameters: ModelParameters | null): Promise<void> | null {
    this.#current = parameters === null ? this.request : withTargetParameters(this.request, parameters)
    const preparing = this.#parts.engines.preparing(model)
    this.#prepared = NOTHING_PREPARED
    this.tokenIds = null
    if (preparing.length === 0) return null
    // Engines that get a prepared prompt take text alone.
    const request = this.#withImages(null, model)
    return preparePrompts(preparing, { request, model, ctx: this.ctx }).then((prepared) => {
      this.#prepared = prepared.byAdapter
      this.tokenIds = prepared.tokenIds
    })
  }

  #open(): void {
    this.#call = this.#parts.upstream.open(this, this)
    if (this.#isPaused) this.#call.pause()
  }

  // The call's options.

  get needsStream(): boolean {
    return this.stream && this.#relay !== null
  }

  get mayLackRoute(): boolean {
    const worker = this.#call?.worker ?? null
    const { passThrough } = this.#options
    if (this.#relay === null || worker === null || passThrough === undefined) return false
    return this.#parts.passThrough.mayLackRoute(worker, passThrough.api)
  }

  readonly accepts = (worker: WorkerEntry): boolean => {
    const { accepts } = this.#options
    if (accepts !== undefined && !accepts(worker)) return false
    return this.#passes(worker) || this.#engineOf(worker) !== null
  }

  #engineOf(worker: WorkerEntry): EngineAdapter | null {
    const { native, prompt } = this.request
    const adapter = this.#parts.engines.of(worker, native?.engine)
    return adapter?.promptKinds?.includes(prompt.kind) === false ? null : adapter
  }

  #passes(worker: WorkerEntry): boolean {
    const { passThrough } = this.#options
    if (this.ctx.hooks.needsGenerations) return false
    return passThrough !== undefined && this.#parts.passThrough.takes(worker, passThrough.api)
  }

  requestFor(
    worker: WorkerEntry,
    model: string,
    number: number,
    parameters: ModelParameters | null,
  ): UpstreamRequest {
    const { passThrough } = this.#options
    this.#reader = null
    this.#relay = null
    if (passThrough !== undefined && this.#passes(worker)) {
      const { path, headers, checkCompletion, usage } = passThrough
      this.#relay = this.#parts.upstream.joinRelay(
        this.ctx,
        { path, headers, checkCompletion, usage, model: this.model, stream: this.stream },
        this.#call as OpenCall,
      )
      return this.#relay.requestFor(worker, model, number, parameters)
    }
    const adapter = this.#engineOf(worker)
    if (adapter === null) throw generationErrors.engine_missing(model, worker.apis)
    const request = this.#withImages(worker, model)
    const run = { request, stream: this.stream, ctx: this.ctx }
    const attempt = new Attempt(run, adapter, this.#prepared.get(adapter) ?? null, worker, model)
    this.#attempt = attempt
    const { method, path, body, headers } = adapter.requestFor(attempt)
    const { upstream } = this.#parts
    return {
      method,
      path,
      body,
      headers: upstream.headersFor(this.ctx, worker, headers, adapter.sendsCredentials),
    }
  }

  /** @param worker null for engines that cannot get images */
  #withImages(worker: WorkerEntry | null, model: string): GenerationRequest {
    const request = this.#current
    const { prompt } = request
    if (prompt.kind !== 'chat') return request
    const { toolImages } = this.#parts
    const areSeen =
      toolImages === 'auto' ? worker !== null && seesImages(worker, model) : toolImages === 'send'
    const messages = withToolImages(prompt.messages, areSeen)
    return messages === prompt.messages ? request : { ...request, prompt: { ...prompt, messages } }
  }

  // The call's events.

  onHead(status: number, headers: HeaderList, contentLength: number): void {
    if (this.#relay !== null && this.#isMissing(status)) this.#askAnew()
    else if (this.#relay !== null) {
      this.#isOver = true
      this.ctx.setListener(this.#relay)
      this.#relay.onHead(status, headers, contentLength)
    } else if (status >= 400) {
      this.#refusal = new BodyExcerpt(MAX_REFUSAL_BYTES)
      this.#refusalHeaders = headers
    } else {
      if (this.stream && this.#parts.upstream.countsUsage) this.#openUnreported()
      this.#read(() => {
        const attempt = this.#attempt as Attempt
        this.#reader = attempt.adapter.read(attempt, this)
        this.#reader.onStart(headers)
      })
    }
  }

  #openUnreported(): void {
    const { counter } = this.#parts
    const model = this.ctx.model ?? ''
    // Of an attempt that was given up.
    this.#unreported?.release()
    this.#unreported = new UnreportedStream(counter?.covers(model) === true ? counter : null, model)
  }

  /** True if the worker lacks the path although it lists the format. */
  #isMissing(status: number): boolean {
    const worker = this.#call?.worker ?? null
    const { passThrough } = this.#options
    if (worker === null || passThrough === undefined) return false
    return this.#parts.passThrough.lacksRoute(worker, passThrough.api, status)
  }

  #askAnew(): void {
    const call = this.#call
    this.#relay = null
    this.ctx.setListener(null)
    this.#open()
    call?.finish()
    call?.abort()
  }

  onData(chunk: Buffer): void {
    if (this.#relay !== null) this.#relay.onData(chunk)
    else if (this.#refusal !== null) {
      this.#refusal.push(chunk)
      if (this.#refusal.isFull) this.#refused()
    } else {
      try {
        this.#reader?.onData(chunk)
      } catch (error) {
        this.#unreadable(error)
      }
    }
  }

  faultAtEnd(): UpstreamFailure | null {
    return this.#relay?.faultAtEnd?.() ?? null
  }

  onEnd(): void {
    if (this.#relay !== null) this.#relay.onEnd()
    else if (this.#refusal !== null) this.#refused()
    else {
      this.#read(() => this.#reader?.onEnd())
      if (!this.#hasFinished && !this.#isOver) this.#failed(generationErrors.generation_cut_off())
    }
  }

  onFailed(error: unknown): void {
    if (this.#relay !== null) {
      this.#isOver = true
      this.#relay.onFailed(error)
    } else this.#failed(this.#withoutEngine() ?? error)
  }

  /** The cause if no worker of the model takes the request, ready or not. */
  #withoutEngine(): GatewayError | null {
    const { model } = this.request
    if (this.#attempt !== null || model === null) return null
    const { engines, upstream } = this.#parts
    const workers = engines.workersOf(upstream.canonicalModel(model))
    const takes = (worker: WorkerEntry) => this.#passes(worker) || this.#engineOf(worker) !== null
    if (workers.length === 0 || workers.some(takes)) return null
    return generationErrors.engine_missing(model, [...new Set(workers.flatMap(({ apis }) => apis))])
  }

  #read(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#unreadable(error)
    }
  }

  #unreadable(error: unknown): void {
    if (error instanceof GatewayError) this.fail(error)
    else {
      const what = messageOf(error)
      this.fail(generationErrors.engine_unreadable.with({ cause: error }, what))
    }
  }

  #refused(): void {
    const { status } = this.#call as OpenCall
    const body = (this.#refusal as BodyExcerpt).bytes()
    const adapter = this.#attempt?.adapter
    this.#call?.finish()
    this.#call?.abort()
    const own = adapter?.toError?.(status, this.#refusalHeaders, body)
    this.#failed(own ?? toRefusal(status, this.#refusalHeaders, body))
  }

  // The sink of the adapter's reader.

  emit(event: GenerationEvent): void {
    if (this.#isOver) return
    this.#hasEmitted = true
    this.#unreported?.add(event)
    if (event.type === 'choice_done') checkExtraContent(event.extraContent)
    if (event.type === 'finished') {
      this.#count(event.usage)
      this.#hasFinished = true
      this.#isOver = true
    }
    const shown = this.#shown(event)
    if (shown === null) return
    if (this.#view !== null) {
      this.#view.push(shown)
      return
    }
    try {
      this.#options.listener.onEvent(shown)
    } catch (error) {
      // A listener that throws at the end has not ended the client's response.
      if (event.type === 'finished') this.#isOver = false
      throw error
    }
  }

  #shown(event: GenerationEvent): GenerationEvent | null {
    const named = event.type === 'tool_call' ? this.#named(event) : event
    if (this.#maps === null) return named
    let shown: GenerationEvent | null = named
    for (const map of this.#maps) if (shown !== null) shown = map(shown)
    return shown
  }

  /** @throws worker_extra_content_too_long */
  #named(event: Extract<GenerationEvent, { type: 'tool_call' }>): GenerationEvent {
    checkExtraContent(event.extraContent)
    const name = this.#attempt?.names.get(event.name)
    return name === undefined ? event : { ...event, name }
  }

  fail(error: GatewayError): void {
    if (this.#isOver) return
    if (!this.#hasEmitted && error.isRetryable && this.#call?.tryElsewhere()) return
    if (this.#call === null) this.#failed(error)
    else {
      this.#call.fail(error)
      // The call reports nothing if it has counted as complete already.
      this.#failed(error)
    }
  }

  stop(): void {
    this.#call?.finish()
    this.#call?.abort()
  }

  /** A hook has thrown, also after the worker's last event. */
  #editFailed(error: unknown): void {
    this.#view = null
    this.#isOver = false
    this.stop()
    this.#failed(error)
  }

  #pauseForEdits(isFull: boolean): void {
    this.#isEditing = isFull
    if (isFull) this.#call?.pause()
    else if (!this.#isPaused) this.resume()
  }

  defer(next: () => void): void {
    this.#deferred = next
    this.#call?.pause()
    if (!this.#isPaused) setImmediate(this.#runDeferred)
  }

  readonly #runDeferred = (): void => {
    const next = this.#deferred
    if (next === null || this.#isPaused) return
    this.#deferred = null
    if (this.#isOver) return
    this.#read(next)
    if (this.#deferred === null && !this.#isPaused && !this.#isEditing) this.#call?.resume()
  }

  // The handle of the caller.

  pause(): void {
    this.#isPaused = true
    this.#call?.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (this.#isEditing) return
    if (this.#deferred === null) this.#call?.resume()
    else setImmediate(this.#runDeferred)
  }

  abort(): void {
    this.#countSoFar()
    this.#isOver = true
    this.#view?.close()
    this.#call?.abort()
  }

  /** Counts the usage of a generation that does not finish. */
  #countSoFar(): void {
    if (this.#isOver || this.#hasFinished || !this.#hasEmitted) return
    this.#count(this.#reader?.usage?.() ?? null)
  }

  #count(usage: GenerationUsage | null): void {
    const call = this.#call
    if (call === null) return
    if (usage !== null) call.used(toUsage(usage))
    else this.#unreported?.count(call, this.request)
    this.#unreported?.release()
    this.#unreported = null
  }

  #failed(cause: unknown): void {
    if (this.#isOver) return
    this.#countSoFar()
    this.#isOver = true
    const error = this.#parts.upstream.toGatewayError(this.ctx, cause)
    if (this.#view !== null) this.#view.push({ type: 'failed', error })
    else this.#options.listener.onEvent({ type: 'failed', error })
  }
}

/** @throws worker_extra_content_too_long (502) */
function checkExtraContent(data: NativeObject | undefined): void {
  if (data !== undefined && !isShortExtraContent(data)) throw generationErrors.worker_extra_content_too_long()
}

function toUsage({ inputTokens, outputTokens, cachedTokens, reasoningTokens }: GenerationUsage): TokenUsage {
  return { input: inputTokens, output: outputTokens, cached: cachedTokens, reasoning: reasoningTokens }
}
