/** One answer whose model may use tools of the gateway: a turn's events as a message, whole or streamed. */
import type {
  RequestContext,
  RunningTurn,
  SseWriter,
  ToolLoopEvent,
  ToolLoopListener,
  ToolLoopService,
  ToolTurn,
} from '#kernel'
import { messagesErrors } from '../errors.ts'
import type { AnswerParts } from './answer.ts'
import type { BlockOptions } from './block-sequence.ts'
import { MessageEvents, PING } from './message-events.ts'
import type { PingTarget } from './pings.ts'
import { type Stop, toStop } from './stop-reason.ts'
import { TurnBlocks } from './turn-blocks.ts'
import { estimatedUsage, toUsage } from './usage.ts'
import { toMessage, WholeBlocks } from './whole-message.ts'

export interface ToolWish {
  /** As the client named it. */
  readonly model: string
  readonly turn: ToolTurn
  readonly blocks: BlockOptions
}

/** @throws GatewayError for what can be refused before anybody is asked */
export function answerWithTools(
  parts: AnswerParts,
  loop: ToolLoopService,
  ctx: RequestContext,
  wish: ToolWish,
): void {
  if (wish.turn.stream) new StreamedTurn(parts, ctx, wish).start(loop)
  else answerWhole(parts, loop, ctx, wish)
}

function stopOf(blocks: TurnBlocks, { turn }: ToolWish): Stop | null {
  if (blocks.isPaused) return { reason: 'pause_turn', sequence: null }
  return toStop(blocks, turn.request.sampling.stop ?? [])
}

function answerWhole(
  { counter }: AnswerParts,
  loop: ToolLoopService,
  ctx: RequestContext,
  wish: ToolWish,
): void {
  const sink = new WholeBlocks()
  const blocks = new TurnBlocks(sink, wish.blocks)
  const onEvent = (event: ToolLoopEvent) => {
    if (event.type === 'failed') ctx.fail(event.error)
    else {
      blocks.add(event)
      if (event.type !== 'finished') return
      const stop = stopOf(blocks, wish)
      if (stop === null) ctx.fail(messagesErrors.generation_aborted())
      else {
        const { usage } = event
        const estimate = () => estimatedUsage(counter.estimate(wish.turn.request), sink.characters)
        ctx.json(200, toMessage(wish.model, sink.blocks, stop, usage === null ? estimate() : toUsage(usage)))
      }
    }
  }
  loop.run(ctx, wish.turn, { onEvent })
}

class StreamedTurn implements ToolLoopListener, PingTarget {
  lastEventMs = 0
  readonly #parts: AnswerParts
  readonly #ctx: RequestContext
  readonly #wish: ToolWish
  readonly #events = new MessageEvents()
  readonly #blocks: TurnBlocks
  #turn: RunningTurn | null = null
  #writer: SseWriter | null = null
  #isPaused = false
  /** The client left, or the request failed by somebody else's hand: nothing is told any more. */
  #isOver = false
  #inputTokens = 0

  constructor(parts: AnswerParts, ctx: RequestContext, wish: ToolWish) {
    this.#parts = parts
    this.#ctx = ctx
    this.#wish = wish
    this.#blocks = new TurnBlocks(this.#events, wish.blocks)
  }

  start(loop: ToolLoopService): void {
    this.#ctx.onCancel(() => {
      this.#isOver = true
      this.#parts.pings.remove(this)
    })
    this.#turn = loop.run(this.#ctx, this.#wish.turn, this)
  }

  onEvent(event: ToolLoopEvent): void {
    if (this.#isOver) return
    if (event.type === 'failed') {
      this.#fail(event.error)
      return
    }
    if (event.type === 'started') this.#begin(event.started.inputTokens)
    else this.#blocks.add(event)
    if (event.type === 'finished') this.#finish(event.usage)
    else this.#write(this.#events.take())
  }

  #begin(told: number | null): void {
    this.#inputTokens = told ?? this.#parts.counter.estimate(this.#wish.turn.request)
    this.#events.start(this.#wish.model, estimatedUsage(this.#inputTokens, 0))
    this.lastEventMs = performance.now()
    // Before the head, at which a hook may end the request.
    this.#parts.pings.add(this)
    this.#writer = this.#ctx.sse()
    this.#writer.onDrain(() => {
      this.#isPaused = false
      this.#turn?.resume()
    })
  }

  #write(events: string): void {
    if (events === '' || this.#writer === null) return
    this.lastEventMs = performance.now()
    if (this.#writer.write(events)) return
    this.#isPaused = true
    this.#turn?.pause()
  }

  ping(): void {
    if (!this.#isPaused) this.#writer?.write(PING)
  }

  #finish(told: Extract<ToolLoopEvent, { type: 'finished' }>['usage']): void {
    const stop = stopOf(this.#blocks, this.#wish)
    if (stop === null) {
      this.#fail(messagesErrors.generation_aborted())
      return
    }
    const { characters } = this.#events
    this.#events.end(stop, told === null ? estimatedUsage(this.#inputTokens, characters) : toUsage(told))
    this.#parts.pings.remove(this)
    this.#writer?.end(this.#events.take())
  }

  #fail(error: unknown): void {
    this.#parts.pings.remove(this)
    this.#ctx.fail(error)
  }
}
