/** Answers that the gateway writes itself: a generation or a turn with tools as a message, whole or streamed. */
import {
  type ExtraHeaders,
  type GatewayError,
  type GenerateOptions,
  type Generation,
  type GenerationEvent,
  type GenerationListener,
  type GenerationRequest,
  Generations,
  type GenerationUsage,
  type Host,
  type RequestContext,
  type TokenizerService,
  type ToolLoopEvent,
  type ToolLoopService,
  type ToolTurn,
} from '#kernel'
import { countPromptTokens, estimatePromptTokens } from '#shared'
import { messagesErrors } from '../errors.ts'
import type { WireUsage } from '../wire.ts'
import { type BlockOptions, BlockSequence } from './block-sequence.ts'
import { MessageStream } from './message-stream.ts'
import type { Pings } from './pings.ts'
import { estimatedUsage, type Stop, toStop, toUsage } from './stop-and-usage.ts'
import { TurnBlocks } from './turn-blocks.ts'
import { toMessage, WholeBlocks } from './whole-message.ts'

export interface AnswerParts {
  readonly host: Host
  readonly tokenizers: TokenizerService | undefined
  readonly pings: Pings
}

/** A generation, and how the client wants its answer. */
export interface AnswerOptions {
  /** As the client names it. */
  readonly model: string
  readonly request: GenerationRequest
  readonly blocks: BlockOptions
  readonly headers: ExtraHeaders
  readonly open: Pick<GenerateOptions, 'passThrough' | 'accepts'>
  /** The error that the client gets for a failure. Default: the failure itself. */
  readonly toError?: (failure: GatewayError) => unknown
}

/** A turn with tools of the gateway, and how the client wants its answer. */
export interface TurnOptions {
  /** As the client names it. */
  readonly model: string
  readonly turn: ToolTurn
  readonly blocks: BlockOptions
  readonly headers: ExtraHeaders
}

function usageOf(usage: GenerationUsage | null, inputTokens: () => number, characters: number): WireUsage {
  return usage === null ? estimatedUsage(inputTokens(), characters) : toUsage(usage)
}

function errorFor({ toError }: AnswerOptions, failure: GatewayError): unknown {
  return toError === undefined ? failure : toError(failure)
}

/** Never throws: failures become the client's reply. */
export function answerWhole({ host }: AnswerParts, ctx: RequestContext, options: AnswerOptions): void {
  const { request } = options
  const sink = new WholeBlocks()
  const blocks = new BlockSequence(sink, options.blocks)
  const onEvent = (event: GenerationEvent) => {
    if (event.type === 'failed') ctx.fail(errorFor(options, event.error))
    else if (event.type !== 'finished') blocks.add(event)
    else {
      const stop = toStop(blocks, request.sampling.stop ?? [])
      const usage = usageOf(event.usage, () => estimatePromptTokens(request), sink.characters)
      sendWhole(ctx, options, sink, stop, usage)
    }
  }
  host.use(Generations).open(ctx, request, { ...options.open, stream: false, listener: { onEvent } })
}

function sendWhole(
  ctx: RequestContext,
  { model, headers }: Pick<AnswerOptions, 'model' | 'headers'>,
  { blocks }: WholeBlocks,
  stop: Stop | null,
  usage: WireUsage,
): void {
  if (stop === null) ctx.fail(messagesErrors.generation_aborted())
  else ctx.json(200, toMessage(model, blocks, stop, usage), headers)
}

/** Never throws: failures become the client's reply. */
export function answerStream(parts: AnswerParts, ctx: RequestContext, options: AnswerOptions): void {
  new StreamedAnswer(parts, ctx, options).start()
}

class StreamedAnswer implements GenerationListener {
  readonly #parts: AnswerParts
  readonly #ctx: RequestContext
  readonly #options: AnswerOptions
  readonly #stream: MessageStream
  readonly #blocks: BlockSequence
  #generation: Generation | null = null
  /** Token count of the prompt, if a tokenizer is loaded. */
  #count: Promise<number> | null = null
  #inputTokens = 0
  /** Events that arrived during the count; null when no count is pending. */
  #held: GenerationEvent[] | null = null

  constructor(parts: AnswerParts, ctx: RequestContext, options: AnswerOptions) {
    this.#parts = parts
    this.#ctx = ctx
    this.#options = options
    this.#stream = new MessageStream(ctx, parts.pings, options.headers)
    this.#blocks = new BlockSequence(this.#stream.events, options.blocks)
  }

  start(): void {
    const { host } = this.#parts
    const { request, open } = this.#options
    // Engines that get tokens report the count themselves; all others report it at the end at best.
    const mayNotReport = host.balance
      .workersOf(host.balance.canonicalModel(request.model ?? ''))
      .some(({ apis }) => apis.length > 0)
    if (mayNotReport) this.#count = countPromptTokens(this.#parts, request)
    this.#count?.catch(() => {})
    this.#generation = host
      .use(Generations)
      .open(this.#ctx, request, { ...open, stream: true, listener: this })
    this.#stream.source = this.#generation
    // Workers that get the client's bytes begin the stream themselves.
    if (open.passThrough === undefined && !this.#stream.isOver && !this.#stream.hasBegun)
      this.#stream.await(() => this.#begin(null))
  }

  onEvent(event: GenerationEvent): void {
    if (this.#held !== null) this.#held.push(event)
    else if (event.type === 'started' && event.inputTokens === null && this.#count !== null)
      this.#hold(event, this.#count)
    else this.#write(event)
  }

  /** Waits for the count: the first event of the stream states it. */
  #hold(event: GenerationEvent, count: Promise<number>): void {
    this.#held = [event]
    this.#generation?.pause()
    const goOn = (tokens: number) => {
      if (this.#stream.isOver) return
      const held = this.#held ?? []
      this.#held = null
      this.#inputTokens = tokens
      this.#generation?.resume()
      for (const one of held) this.#write(one)
    }
    count.then(goOn, () => goOn(0)).catch((error: unknown) => this.#stream.fail(error))
  }

  #write(event: GenerationEvent): void {
    if (this.#stream.isOver) return
    if (event.type === 'failed') this.#stream.fail(errorFor(this.#options, event.error))
    else if (event.type === 'started') this.#begin(event.inputTokens)
    else if (event.type === 'finished') this.#finish(event.usage)
    else {
      this.#blocks.add(event)
      this.#stream.flush()
    }
  }

  #begin(reported: number | null): void {
    if (reported !== null) this.#inputTokens = reported
    if (this.#stream.hasBegun) return
    if (this.#inputTokens === 0) this.#inputTokens = estimatePromptTokens(this.#options.request)
    this.#stream.begin(this.#options.model, this.#inputTokens)
  }

  #finish(reported: GenerationUsage | null): void {
    const stop = toStop(this.#blocks, this.#options.request.sampling.stop ?? [])
    const usage = usageOf(reported, () => this.#inputTokens, this.#stream.events.characters)
    if (stop === null) this.#stream.fail(messagesErrors.generation_aborted())
    else this.#stream.end(stop, usage)
  }
}

/** @throws GatewayError for requests that the tool loop refuses at once */
export function answerWithTools(
  parts: AnswerParts,
  loop: ToolLoopService,
  ctx: RequestContext,
  options: TurnOptions,
): void {
  if (options.turn.stream) streamTurn(parts, loop, ctx, options)
  else answerTurn(loop, ctx, options)
}

function stopOf(blocks: TurnBlocks, { turn }: TurnOptions): Stop | null {
  if (blocks.isPaused) return { reason: 'pause_turn', sequence: null }
  return toStop(blocks, turn.request.sampling.stop ?? [])
}

function answerTurn(loop: ToolLoopService, ctx: RequestContext, options: TurnOptions): void {
  const sink = new WholeBlocks()
  const blocks = new TurnBlocks(sink, options.blocks)
  const onEvent = (event: ToolLoopEvent) => {
    if (event.type === 'failed') {
      ctx.fail(event.error)
      return
    }
    blocks.add(event)
    if (event.type !== 'finished') return
    const usage = usageOf(event.usage, () => estimatePromptTokens(options.turn.request), sink.characters)
    sendWhole(ctx, options, sink, stopOf(blocks, options), usage)
  }
  loop.run(ctx, options.turn, { onEvent })
}

function streamTurn(
  { pings }: AnswerParts,
  loop: ToolLoopService,
  ctx: RequestContext,
  options: TurnOptions,
): void {
  const { model, turn } = options
  const stream = new MessageStream(ctx, pings, options.headers)
  const blocks = new TurnBlocks(stream.events, options.blocks)
  let inputTokens = 0
  const onEvent = (event: ToolLoopEvent) => {
    if (stream.isOver) return
    if (event.type === 'failed') stream.fail(event.error)
    else if (event.type === 'started') {
      inputTokens = event.started.inputTokens ?? estimatePromptTokens(turn.request)
      if (!stream.hasBegun) stream.begin(model, inputTokens)
    } else {
      blocks.add(event)
      if (event.type !== 'finished') stream.flush()
      else {
        const stop = stopOf(blocks, options)
        const usage = usageOf(event.usage, () => inputTokens, stream.events.characters)
        if (stop === null) stream.fail(messagesErrors.generation_aborted())
        else stream.end(stop, usage)
      }
    }
  }
  stream.source = loop.run(ctx, turn, { onEvent })
  if (!stream.isOver && !stream.hasBegun)
    stream.await(() => {
      inputTokens = estimatePromptTokens(turn.request)
      stream.begin(model, inputTokens)
    })
}
