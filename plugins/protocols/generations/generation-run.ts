/**
 * One generation: sends the adapter's request to the picked worker and gives the response to the adapter's reader, with the
 * retries, limits and counters of any call. `generation-output.ts` passes on the events that the reader emits. A worker that
 * takes the client's format gets the client's bytes instead. @hot
 */
import {
  type Call,
  type CallHandler,
  type EngineAdapter,
  type EngineQuirks,
  type EngineReader,
  editBody,
  type GatewayError,
  type GenerateOptions,
  type Generation,
  type GenerationRequest,
  type HeaderList,
  type JoinedRelay,
  type ModelParameters,
  type OpenCall,
  type RelayContext,
  type UpstreamFailure,
  type UpstreamRequest,
  type WorkerEntry,
  withQuery,
} from '#kernel'
import { BodyExcerpt, ignoredMembers } from '#shared'
import { type Engines, isUnable, type PreparedPrompts, preparePrompts } from './engines.ts'
import { fileNotLoaded, generationErrors, toRefusal } from './errors.ts'
import type { FileLoader } from './file-loader.ts'
import { askHooks, type OpenedGeneration } from './generation-hooks.ts'
import { GenerationOutput, type OutputParts, type OutputSource } from './generation-output.ts'
import type { PassThroughDecision } from './pass-through.ts'
import { editPrompt } from './prompt-edits.ts'
import { withTargetParameters } from './target-parameters.ts'
import { type ToolImages, withToolImages } from './tool-images.ts'
import { firstFileUrl, withLoadedFiles } from './url-files.ts'
import { WorkerAttempt } from './worker-attempt.ts'

/** Bytes of an error body that are read for its message. */
const MAX_REFUSAL_BYTES = 65_536

const NOT_ALLOWED =
  'no worker of the model loads files by URL, and plugins.generations.fileUrls.isAllowed does not let the gateway load them'

const NOTHING_PREPARED: PreparedPrompts['byAdapter'] = new Map()

export interface GenerationParts extends OutputParts {
  readonly engines: Engines
  readonly quirksOf: (worker: WorkerEntry) => EngineQuirks
  readonly passThrough: PassThroughDecision
  readonly toolImages: ToolImages
  readonly files: FileLoader
}

export class GenerationRun implements Generation, Call, CallHandler, OutputSource {
  readonly ctx: RelayContext
  request: GenerationRequest
  readonly stream: boolean
  readonly worker = null
  readonly promptBytes = null
  tokenIds: Uint32Array | null = null
  readonly #options: GenerateOptions
  readonly #parts: GenerationParts
  readonly #output: GenerationOutput
  #prepared: PreparedPrompts['byAdapter'] = NOTHING_PREPARED
  /** Null until one of the adapters cannot express the request. */
  #unable: PreparedPrompts['unable'] | null = null
  /** The request with the parameters of the current target. */
  #current: GenerationRequest
  call: OpenCall | null = null
  attempt: WorkerAttempt | null = null
  /** Receives the response in place of the adapter's reader if the bytes pass through; null otherwise. */
  #relay: JoinedRelay | null = null
  /** Of a file that only some workers can load. */
  #fileUrl: string | null = null
  reader: EngineReader | null = null
  #refusal: BodyExcerpt | null = null
  #refusalHeaders: HeaderList = []

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
    this.#output = new GenerationOutput(this, options.listener, parts)
  }

  get model(): string | null {
    return this.request.model
  }

  /** Never throws. */
  start(): void {
    const { ctx } = this
    ctx.onCancel(() => this.abort())
    if (this.#output.isOver) return
    try {
      ctx.generationCount++
      const { onGeneration } = ctx.hooks
      const opened = onGeneration === null ? null : askHooks(this, onGeneration)
      if (opened === null) this.#load()
      else if (!(opened instanceof Promise)) this.#goOn(opened)
      else opened.then((one) => this.#goOn(one)).catch((error: unknown) => this.#output.failed(error))
    } catch (error) {
      process.nextTick(() => this.#output.failed(error))
    }
  }

  #goOn({ request, maps, answer }: OpenedGeneration): void {
    if (this.#output.isOver) return
    this.#output.maps = maps
    this.#setRequest(request)
    if (answer) setImmediate(() => this.#output.replay(answer))
    else this.#load()
  }

  #setRequest(request: GenerationRequest): void {
    this.request = request
    this.#current = request
  }

  /** Loads files by URL, unless every worker gets the client's own request or the operator does not allow it. */
  #load(): void {
    this.#fileUrl = firstFileUrl(this.request)
    if (this.#fileUrl === null || !this.#mustLoad()) {
      this.#edit()
      return
    }
    withLoadedFiles(this.request, this.#parts.files, this.ctx)
      .then((request) => {
        if (this.#output.isOver) return
        this.#fileUrl = null
        this.#setRequest(request)
        this.#edit()
      })
      .catch((error: unknown) => this.#output.failed(error))
  }

  #mustLoad(): boolean {
    const { engines, files, upstream } = this.#parts
    const { model, native } = this.request
    if (!files.isAllowed(this.ctx)) return false
    const takesOwn = (worker: WorkerEntry) =>
      this.#passes(worker) || (native !== undefined && this.#engineOf(worker)?.name === native.engine)
    return upstream.isVirtual(model) || !engines.candidates(model).every(takesOwn)
  }

  /** Lets hooks edit the texts of the prompt, in each form that a worker may get. */
  #edit(): void {
    const { ctx } = this
    if (ctx.hooks.onPromptText === null) {
      this.#begin()
      return
    }
    const edited = editPrompt(ctx, this.request)
    const pending = this.#options.passThrough === undefined ? null : editBody(ctx)
    if (pending === null && !(edited instanceof Promise)) {
      this.#setRequest(edited)
      this.#begin()
      return
    }
    Promise.all([edited, pending])
      .then(([request]) => {
        this.#setRequest(request)
        this.#begin()
      })
      .catch((error: unknown) => this.#output.failed(error))
  }

  #begin(): void {
    if (this.#output.isOver) return
    const { upstream } = this.#parts
    const { model } = this.request
    const pending = upstream.isVirtual(model) ? null : this.prepareFor(upstream.canonicalModel(model), null)
    if (pending === null) this.#open()
    else
      pending.then(
        () => {
          if (!this.#output.isOver) this.#open()
        },
        (error: unknown) => this.#output.failed(error),
      )
  }

  prepareFor(model: string, parameters: ModelParameters | null): Promise<void> | null {
    this.#current = parameters === null ? this.request : withTargetParameters(this.request, parameters)
    const preparing = this.#parts.engines.preparing(model)
    this.#prepared = NOTHING_PREPARED
    this.#unable = null
    this.tokenIds = null
    if (preparing.length === 0) return null
    // Engines that get a prepared prompt take text alone.
    const request = withToolImages(this.#current, this.#parts.toolImages, null, model)
    return preparePrompts(preparing, { request, model, ctx: this.ctx }).then((prepared) => {
      this.#prepared = prepared.byAdapter
      this.tokenIds = prepared.tokenIds
      const [error] = prepared.unable.values()
      if (error === undefined) return
      this.#unable = prepared.unable
      if (!this.#parts.engines.workersOf(model).some((worker) => this.#takes(worker))) throw error
    })
  }

  #open(): void {
    this.call = this.#parts.upstream.open(this, this)
  }

  // The call's options.

  get needsStream(): boolean {
    return this.stream && this.#relay !== null
  }

  get mayLackRoute(): boolean {
    const worker = this.call?.worker ?? null
    const { passThrough } = this.#options
    if (this.#relay === null || worker === null || passThrough === undefined) return false
    return this.#parts.passThrough.mayLackRoute(worker, passThrough.api)
  }

  readonly accepts = (worker: WorkerEntry): boolean => {
    const { accepts } = this.#options
    return (accepts === undefined || accepts(worker)) && this.#takes(worker)
  }

  #takes(worker: WorkerEntry): boolean {
    return this.#passes(worker) || this.#engineOf(worker) !== null
  }

  #engineOf(worker: WorkerEntry): EngineAdapter | null {
    const { native, prompt } = this.request
    const adapter = this.#parts.engines.of(worker, native?.engine)
    if (this.#fileUrl !== null && adapter?.takesFileUrls !== true) return null
    if (adapter !== null && this.#unable?.has(adapter) === true) return null
    return adapter?.promptKinds?.includes(prompt.kind) === false ? null : adapter
  }

  #passes(worker: WorkerEntry): boolean {
    const { passThrough } = this.#options
    if (this.ctx.hooks.needsGenerations) return false
    return passThrough !== undefined && this.#parts.passThrough.takes(worker, passThrough.api, this.ctx)
  }

  requestFor(
    worker: WorkerEntry,
    model: string,
    number: number,
    parameters: ModelParameters | null,
  ): UpstreamRequest {
    const { passThrough } = this.#options
    this.reader = null
    this.#relay = null
    if (passThrough !== undefined && this.#passes(worker)) {
      const { api: _, ...relayed } = passThrough
      this.#relay = this.#parts.upstream.joinRelay(
        this.ctx,
        { ...relayed, model: this.model, stream: this.stream },
        this.call as OpenCall,
      )
      return this.#relay.requestFor(worker, model, number, parameters)
    }
    const adapter = this.#engineOf(worker)
    if (adapter === null) throw generationErrors.engine_missing(model, worker.apis)
    const request = withToolImages(this.#current, this.#parts.toolImages, worker, model)
    const quirks = this.#parts.quirksOf(worker)
    const run = { request, quirks, stream: this.stream || mustStream(request, quirks), ctx: this.ctx }
    const attempt = new WorkerAttempt(run, adapter, this.#prepared.get(adapter) ?? null, worker, model)
    this.attempt = attempt
    const { method, path, body, headers } = this.#written(adapter, attempt)
    const isOwn = request.native?.engine === adapter.name
    if (!isOwn && number === 1) this.#warnOfQuery()
    const { upstream } = this.#parts
    return {
      method,
      path: isOwn ? withQuery(path, this.ctx) : path,
      body,
      headers: upstream.headersFor(this.ctx, worker, headers, adapter.sendsCredentials),
    }
  }

  /** The call tries workers of other formats if that of the adapter cannot express the request. */
  #written(adapter: EngineAdapter, attempt: WorkerAttempt): ReturnType<EngineAdapter['requestFor']> {
    try {
      return adapter.requestFor(attempt)
    } catch (error) {
      if (isUnable(error)) this.#unable = new Map(this.#unable ?? []).set(adapter, error)
      throw error
    }
  }

  /** A worker of another format does not know the parameters of the client's query. */
  #warnOfQuery(): void {
    const { ctx } = this
    if (ctx.query === '' || ctx.generationCount > 1) return
    const { workerQuery = {} } = ctx.route.docs
    const names = [...new URLSearchParams(ctx.query).keys()].flatMap((name) =>
      Object.hasOwn(workerQuery, name) ? [] : `query.${name}`,
    )
    for (const warning of ignoredMembers(names)) ctx.warn(warning)
  }

  // The call's events.

  onHead(status: number, headers: HeaderList, contentLength: number): void {
    if (this.#relay !== null && this.#isMissing(status)) this.#askAnew()
    else if (this.#relay !== null) {
      this.#output.isOver = true
      this.ctx.setListener(this.#relay)
      this.#relay.onHead(status, headers, contentLength)
    } else if (status >= 400) {
      this.#refusal = new BodyExcerpt(MAX_REFUSAL_BYTES)
      this.#refusalHeaders = headers
    } else {
      if (this.attempt?.stream === true) this.#output.countStream()
      this.#output.read(() => {
        const attempt = this.attempt as WorkerAttempt
        this.reader = attempt.adapter.read(attempt, this.#output)
        this.reader.onStart(headers)
      })
    }
  }

  /** True if the worker lacks the path although it lists the format. */
  #isMissing(status: number): boolean {
    const worker = this.call?.worker ?? null
    const { passThrough } = this.#options
    if (worker === null || passThrough === undefined) return false
    return this.#parts.passThrough.lacksRoute(worker, passThrough.api, status)
  }

  #askAnew(): void {
    const call = this.call
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
        this.reader?.onData(chunk)
      } catch (error) {
        this.#output.unreadable(error)
      }
    }
  }

  faultAtEnd(): UpstreamFailure | null {
    return this.#relay?.faultAtEnd?.() ?? null
  }

  hasSentError(): boolean {
    return this.#relay?.hasSentError?.() === true
  }

  onEnd(): void {
    if (this.#relay !== null) this.#relay.onEnd()
    else if (this.#refusal !== null) this.#refused()
    else {
      this.#output.read(() => this.reader?.onEnd())
      if (!this.#output.hasFinished) this.#output.failed(generationErrors.generation_cut_off())
      this.#release()
    }
  }

  /** Releases the memory of the ended call: many requests may wait until their answers are stored. */
  #release(): void {
    this.call = null
    this.attempt = null
    this.reader = null
  }

  onFailed(error: unknown): void {
    if (this.#relay !== null) {
      this.#output.isOver = true
      this.#relay.onFailed(error)
    } else this.#output.failed(this.#withoutEngine() ?? error)
  }

  /** The cause if no worker of the model takes the request, ready or not. */
  #withoutEngine(): GatewayError | null {
    const { model } = this.request
    if (this.attempt !== null || model === null) return null
    const { engines, upstream } = this.#parts
    const workers = engines.workersOf(model)
    if (
      this.#fileUrl !== null &&
      (workers.length > 0 || upstream.isVirtual(model)) &&
      !workers.some((worker) => this.#takes(worker))
    )
      return fileNotLoaded(this.ctx, this.#fileUrl, NOT_ALLOWED)
    if (workers.length === 0 || workers.some((worker) => this.#takes(worker))) return null
    return generationErrors.engine_missing(model, [...new Set(workers.flatMap(({ apis }) => apis))])
  }

  #refused(): void {
    const { status } = this.call as OpenCall
    const body = (this.#refusal as BodyExcerpt).bytes()
    const adapter = this.attempt?.adapter
    this.call?.finish()
    this.call?.abort()
    const own = adapter?.toError?.(status, this.#refusalHeaders, body)
    this.#output.failed(own ?? toRefusal(status, this.#refusalHeaders, body))
  }

  abort(): void {
    this.#output.close()
    this.call?.abort()
  }
}

/**
 * A whole answer would go on behind a stop string that the engine mistakes, begin with the message that it continues, or have the
 * usage of its first choice.
 */
function mustStream({ sampling, prompt, choices }: GenerationRequest, quirks: EngineQuirks): boolean {
  if (quirks.reportsPerChoice === true && choices > 1) return true
  if (quirks.mistakesStops === true && (sampling.stop?.length ?? 0) > 0) return true
  const isContinued = prompt.kind === 'chat' && prompt.messages.at(-1)?.role === 'assistant'
  return quirks.repeatsPrefill === true && isContinued
}
