/** Answers that the gateway writes itself: a generation or a turn with tools as a message, whole or streamed. */
import {
  type ExtraHeaders,
  type GatewayError,
  type GenerateOptions,
  type GenerationEvent,
  type GenerationListener,
  type GenerationRequest,
  Generations,
  type GenerationUsage,
  type Host,
  type RequestContext,
  type TokenizerService,
  type ToolLoopService,
  type ToolTurn,
} from '#kernel'
import { answerErrors, countPromptTokens, estimatePromptTokens } from '#shared'
import { BlockSequence } from './block-sequence.ts'
import type { BlockOptions } from './blocks.ts'
import { estimatedUsage, toMessage, toStop, toUsage, WholeBlocks } from './message.ts'
import { MessageStream, type Pings } from './message-stream.ts'

export interface AnswerParts {
  readonly host: Host
  readonly tokenizers: TokenizerService | undefined
  readonly pings: Pings
}

/** How the client wants its answer. */
interface WantedAnswer {
  /** As the client names it. */
  readonly model: string
  readonly blocks: BlockOptions
  readonly headers: ExtraHeaders
  /** The error that the client gets for a failure. Default: the failure itself. */
  readonly toError?: (failure: GatewayError) => unknown
}

/** A generation, and how the client wants its answer. */
export interface AnswerOptions extends WantedAnswer {
  readonly request: GenerationRequest
  readonly open: Pick<GenerateOptions, 'passThrough' | 'accepts'>
}

/** A turn with tools of the gateway, and how the client wants its answer. */
export interface TurnOptions extends WantedAnswer {
  readonly turn: ToolTurn
}

/** What answers. */
interface Source {
  readonly request: GenerationRequest
  readonly open: (listener: GenerationListener) => void
}

/** Never throws: failures become the client's response. */
export function answerGeneration(
  parts: AnswerParts,
  ctx: RequestContext,
  wanted: AnswerOptions,
  stream: boolean,
): void {
  const { request, open } = wanted
  const source: Source = {
    request,
    open: (listener) => parts.host.use(Generations).open(ctx, request, { ...open, stream, listener }),
  }
  if (!stream) answerWhole(ctx, wanted, source)
  // Workers that get the client's bytes begin the stream themselves.
  else
    new StreamedAnswer(parts, ctx, wanted, source).start(
      countOf(parts, request),
      open.passThrough === undefined,
    )
}

/** @throws GatewayError for requests that the tool loop refuses at once */
export function answerWithTools(
  parts: AnswerParts,
  loop: ToolLoopService,
  ctx: RequestContext,
  wanted: TurnOptions,
): void {
  const { turn } = wanted
  const source: Source = {
    request: turn.request,
    open: (listener) => loop.run(ctx, turn, listener),
  }
  if (turn.stream) new StreamedAnswer(parts, ctx, wanted, source).start(null, true)
  else answerWhole(ctx, wanted, source)
}

/** Engines that get tokens report the count themselves; all others report it at the end at best. */
function countOf(parts: AnswerParts, request: GenerationRequest): Promise<number> | null {
  const { balance } = parts.host
  const workers = balance.workersOf(request.model ?? '')
  return workers.some(({ apis }) => apis.length > 0) ? countPromptTokens(parts, request) : null
}

function errorFor({ toError }: WantedAnswer, failure: GatewayError): unknown {
  return toError === undefined ? failure : toError(failure)
}

function answerWhole(ctx: RequestContext, wanted: WantedAnswer, { request, open }: Source): void {
  const sink = new WholeBlocks()
  const blocks = new BlockSequence(sink, wanted.blocks)
  const onEvent = (event: GenerationEvent) => {
    if (event.type === 'failed') {
      ctx.fail(errorFor(wanted, event.error))
      return
    }
    blocks.add(event)
    if (event.type !== 'finished') return
    const stop = toStop(blocks, request.sampling.stop ?? [])
    if (stop === null) {
      ctx.fail(answerErrors.worker_aborted())
      return
    }
    const usage =
      event.usage === null || event.usage.isEstimated
        ? estimatedUsage(estimatePromptTokens(request), blocks.characters)
        : toUsage(event.usage)
    blocks.leftOut.report(ctx)
    ctx.json(200, toMessage(wanted.model, sink.blocks, stop, usage), wanted.headers)
  }
  open({ onEvent })
}

class StreamedAnswer {
  readonly #ctx: RequestContext
  readonly #wanted: WantedAnswer
  readonly #source: Source
  readonly #stream: MessageStream
  readonly #blocks: BlockSequence
  /** Token count of the prompt, if a tokenizer is loaded. */
  #count: Promise<number> | null = null
  #inputTokens = 0
  /** Events that wait for the count, or for the first ping; null when none do. */
  #held: GenerationEvent[] | null = null

  constructor({ pings }: AnswerParts, ctx: RequestContext, wanted: WantedAnswer, source: Source) {
    this.#ctx = ctx
    this.#wanted = wanted
    this.#source = source
    this.#stream = new MessageStream(ctx, pings, wanted.headers)
    this.#blocks = new BlockSequence(this.#stream.events, wanted.blocks)
  }

  /**
   * @param count of the prompt's tokens; null if the source reports it, or nothing can count
   * @param beginsEarly begins the stream when the first ping is due
   */
  start(count: Promise<number> | null, beginsEarly: boolean): void {
    this.#count = count
    // The estimate stays if the count fails. A count that is late is used for the usage at the end.
    count?.then(
      (tokens) => {
        this.#inputTokens = tokens
      },
      () => {},
    )
    this.#source.open({ onEvent: (event) => this.#onEvent(event) })
    if (beginsEarly && !this.#stream.isOver && !this.#stream.hasBegun) this.#beginAfterSilence()
  }

  #beginAfterSilence(): void {
    this.#stream.await(() => {
      if (this.#held === null) this.#begin(null)
      else this.#release()
    })
  }

  #onEvent(event: GenerationEvent): void {
    if (this.#held !== null) this.#held.push(event)
    else if (
      event.type === 'started' &&
      this.#count !== null &&
      event.inputTokens === null &&
      !this.#stream.hasBegun
    )
      this.#hold(event, this.#count)
    else this.#write(event)
  }

  /** Waits for the count, which the first event of the stream states, until the first ping is due. */
  #hold(event: GenerationEvent, count: Promise<number>): void {
    this.#held = [event]
    this.#ctx.flow.hold()
    this.#beginAfterSilence()
    const release = () => this.#release()
    count.then(release, release).catch((error: unknown) => this.#stream.fail(error))
  }

  #release(): void {
    const held = this.#held
    if (held === null) return
    this.#held = null
    this.#ctx.flow.release()
    for (const one of held) this.#write(one)
  }

  #write(event: GenerationEvent): void {
    if (this.#stream.isOver) return
    if (event.type === 'failed') this.#stream.fail(errorFor(this.#wanted, event.error))
    else if (event.type === 'started') this.#begin(event.inputTokens)
    else {
      this.#blocks.add(event)
      if (event.type === 'finished') this.#finish(event.usage)
      else this.#stream.flush()
    }
  }

  #begin(reported: number | null): void {
    if (reported !== null) this.#inputTokens = reported
    if (this.#stream.hasBegun) return
    if (this.#inputTokens === 0) this.#inputTokens = estimatePromptTokens(this.#source.request)
    this.#stream.begin(this.#wanted.model, this.#inputTokens)
  }

  #finish(reported: GenerationUsage | null): void {
    const stop = toStop(this.#blocks, this.#source.request.sampling.stop ?? [])
    const usage =
      reported === null || reported.isEstimated
        ? estimatedUsage(this.#inputTokens, this.#blocks.characters)
        : toUsage(reported)
    if (stop === null) this.#stream.fail(answerErrors.worker_aborted())
    else {
      this.#blocks.leftOut.report(this.#ctx)
      this.#stream.end(stop, usage)
    }
  }
}
