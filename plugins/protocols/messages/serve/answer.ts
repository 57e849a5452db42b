/** One answer that is made here: a generation's events as a message, whole or streamed. */

import type {
  GatewayError,
  GenerateOptions,
  Generation,
  GenerationEvent,
  GenerationListener,
  GenerationRequest,
  GenerationUsage,
  Host,
  RequestContext,
  SseWriter,
} from '#kernel'
import { Generations } from '#kernel'
import { messagesErrors } from '../errors.ts'
import { type BlockOptions, BlockSequence } from './block-sequence.ts'
import { MessageEvents, PING } from './message-events.ts'
import type { Pings, PingTarget } from './pings.ts'
import type { PromptCounter } from './prompt-counter.ts'
import { toStop } from './stop-reason.ts'
import { estimatedUsage, toUsage, type WireUsage } from './usage.ts'
import { toMessage, WholeBlocks } from './whole-message.ts'

export interface AnswerParts {
  readonly host: Host
  readonly counter: PromptCounter
  readonly pings: Pings
}

/** What the client asked for that is no part of the generation. */
export interface AnswerWish {
  /** As the client named it. */
  readonly model: string
  readonly request: GenerationRequest
  readonly blocks: BlockOptions
  readonly open: Pick<GenerateOptions, 'passThrough' | 'accepts'>
  /** What the client is told when the generation fails. Default: the failure itself. */
  readonly toError?: (failure: GatewayError) => unknown
}

/** Never throws: what goes wrong is the client's reply. */
export function answerWhole({ host, counter }: AnswerParts, ctx: RequestContext, wish: AnswerWish): void {
  const sink = new WholeBlocks()
  const blocks = new BlockSequence(sink, wish.blocks)
  const { request } = wish
  const onEvent = (event: GenerationEvent) => {
    if (event.type === 'failed') ctx.fail(errorFor(wish, event.error))
    else if (event.type !== 'finished') blocks.add(event)
    else {
      const stop = toStop(blocks, request.sampling.stop ?? [])
      if (stop === null) ctx.fail(messagesErrors.generation_aborted())
      else {
        const usage = usageOf(event.usage, () => counter.estimate(request), sink.characters)
        ctx.json(200, toMessage(wish.model, sink.blocks, stop, usage))
      }
    }
  }
  host.use(Generations).open(ctx, request, { ...wish.open, stream: false, listener: { onEvent } })
}

function errorFor({ toError }: AnswerWish, failure: GatewayError): unknown {
  return toError === undefined ? failure : toError(failure)
}

function usageOf(usage: GenerationUsage | null, inputTokens: () => number, characters: number): WireUsage {
  return usage === null ? estimatedUsage(inputTokens(), characters) : toUsage(usage)
}

/** Never throws: what goes wrong is the client's reply. */
export function answerStream(parts: AnswerParts, ctx: RequestContext, wish: AnswerWish): void {
  new StreamedAnswer(parts, ctx, wish).start()
}

class StreamedAnswer implements GenerationListener, PingTarget {
  lastEventMs = 0
  readonly #parts: AnswerParts
  readonly #ctx: RequestContext
  readonly #wish: AnswerWish
  readonly #events = new MessageEvents()
  readonly #blocks: BlockSequence
  #generation: Generation | null = null
  #writer: SseWriter | null = null
  #isPaused = false
  /** The client left, or the request failed by somebody else's hand: nothing is told any more. */
  #isOver = false
  /** Under way where a tokenizer counts the prompt. */
  #count: Promise<number> | null = null
  #inputTokens = 0
  /** What has come while the count was under way; null when nothing waits. */
  #held: GenerationEvent[] | null = null

  constructor(parts: AnswerParts, ctx: RequestContext, wish: AnswerWish) {
    this.#parts = parts
    this.#ctx = ctx
    this.#wish = wish
    this.#blocks = new BlockSequence(this.#events, wish.blocks)
  }

  start(): void {
    const { host, counter } = this.#parts
    const { request, open } = this.#wish
    // Engines that are spoken to in tokens tell themselves; all others only at the end.
    const mayNotTell = host.balance
      .workersOf(host.balance.canonicalModel(request.model ?? ''))
      .some(({ apis }) => apis.length > 0)
    if (mayNotTell) this.#count = counter.count(request)
    this.#count?.catch(() => {})
    this.#ctx.onCancel(() => {
      this.#isOver = true
      this.#parts.pings.remove(this)
    })
    this.#generation = host
      .use(Generations)
      .open(this.#ctx, request, { ...open, stream: true, listener: this })
  }

  onEvent(event: GenerationEvent): void {
    if (this.#held !== null) this.#held.push(event)
    else if (event.type === 'started' && event.inputTokens === null && this.#count !== null)
      this.#hold(event, this.#count)
    else this.#tell(event)
  }

  /** The first event of the stream says how long the prompt is. */
  #hold(event: GenerationEvent, count: Promise<number>): void {
    this.#held = [event]
    this.#generation?.pause()
    const goOn = (tokens: number) => {
      if (this.#isOver) return
      const held = this.#held ?? []
      this.#held = null
      this.#inputTokens = tokens
      this.#generation?.resume()
      for (const one of held) this.#tell(one)
    }
    count.then(goOn, () => goOn(0)).catch((error: unknown) => this.#fail(error))
  }

  #tell(event: GenerationEvent): void {
    if (this.#isOver) return
    if (event.type === 'failed') {
      this.#fail(errorFor(this.#wish, event.error))
      return
    }
    if (event.type === 'started') this.#begin(event.inputTokens)
    else if (event.type === 'finished') this.#finish(event.usage)
    else {
      this.#blocks.add(event)
      this.#write(this.#events.take())
    }
  }

  #begin(told: number | null): void {
    if (told !== null) this.#inputTokens = told
    if (this.#inputTokens === 0) this.#inputTokens = this.#parts.counter.estimate(this.#wish.request)
    this.#events.start(this.#wish.model, estimatedUsage(this.#inputTokens, 0))
    this.lastEventMs = performance.now()
    // Before the head, at which a hook may end the request.
    this.#parts.pings.add(this)
    this.#writer = this.#ctx.sse()
    this.#writer.onDrain(() => this.#drained())
    this.#write(this.#events.take())
  }

  #write(events: string): void {
    if (events === '') return
    this.lastEventMs = performance.now()
    if (this.#writer?.write(events) !== false) return
    this.#isPaused = true
    this.#generation?.pause()
  }

  #drained(): void {
    this.#isPaused = false
    this.#generation?.resume()
  }

  ping(): void {
    if (!this.#isPaused && this.#held === null) this.#writer?.write(PING)
  }

  #finish(told: GenerationUsage | null): void {
    const stop = toStop(this.#blocks, this.#wish.request.sampling.stop ?? [])
    if (stop === null) {
      this.#fail(messagesErrors.generation_aborted())
      return
    }
    const usage = usageOf(told, () => this.#inputTokens, this.#events.characters)
    this.#events.end(stop, usage)
    this.#parts.pings.remove(this)
    this.#writer?.end(this.#events.take())
  }

  #fail(error: unknown): void {
    this.#parts.pings.remove(this)
    this.#ctx.fail(error)
  }
}
