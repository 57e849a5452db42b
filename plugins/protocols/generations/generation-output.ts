/**
 * Passes the events of one generation to its listener: restores the client's function names, applies the maps and text hooks
 * of plugins, counts usage, and ends the answer exactly once. The sink of the adapter's reader. @hot
 */
import {
  type EngineReader,
  type EngineSink,
  type FlowControl,
  GatewayError,
  type GenerateOptions,
  type GenerationAnswer,
  type GenerationEvent,
  type GenerationRequest,
  type GenerationUsage,
  messageOf,
  type NativeObject,
  type OpenCall,
  type RelayContext,
  type TokenUsage,
  type Upstream,
} from '#kernel'
import { isShortExtraContent } from '#shared'
import { generationErrors } from './errors.ts'
import type { EventMap } from './generation-hooks.ts'
import { type StreamCounter, UnreportedStream } from './stream-counter.ts'
import { TextView } from './text-view.ts'

export interface OutputParts {
  readonly upstream: Upstream
  /** Null without tokenizers. */
  readonly counter: StreamCounter | null
}

/** The generation that produces the events. */
export interface OutputSource {
  readonly ctx: RelayContext
  readonly request: GenerationRequest
  readonly stream: boolean
  /** Null until a worker is asked. */
  readonly call: OpenCall | null
  /** Of the current attempt; null before its response. */
  readonly reader: EngineReader | null
  /** With the client's names of functions by those that the worker got in their place; null before the first attempt. */
  readonly attempt: { readonly names: ReadonlyMap<string, string> } | null
}

export class GenerationOutput implements EngineSink {
  /** No further event is passed on: the answer has ended, or its bytes pass through. */
  isOver = false
  hasFinished = false
  /** Null without such hooks. */
  maps: readonly EventMap[] | null = null
  readonly #source: OutputSource
  readonly #listener: GenerateOptions['listener']
  readonly #parts: OutputParts
  /** Null for responses that are not streamed. */
  #unreported: UnreportedStream | null = null
  #view: TextView | null = null
  #hasEmitted = false
  /** Null for answers that are not streamed: no client reads them while they arrive. */
  readonly #flow: FlowControl | null
  /** The response is held, and the upstream with it. */
  #isHeld = false
  /** Text waits for an editor. */
  #isEditing = false
  /** Rest of the reader's work for a large chunk; the upstream is paused until it is done. */
  #deferred: (() => void) | null = null

  constructor(source: OutputSource, listener: GenerateOptions['listener'], parts: OutputParts) {
    this.#source = source
    this.#listener = listener
    this.#parts = parts
    const { ctx } = source
    const { onText } = ctx.hooks
    this.#flow = source.stream ? ctx.flow : null
    if (onText !== null)
      this.#view = new TextView({
        ctx,
        onText,
        deliver: (event) => listener.onEvent(event),
        onError: (error) => this.#editFailed(error),
        onFull: (isFull) => this.#pauseForEdits(isFull),
      })
  }

  emit(event: GenerationEvent): void {
    if (this.isOver) return
    this.#hasEmitted = true
    this.#unreported?.add(event)
    if (event.type === 'choice_done') checkExtraContent(event.extraContent)
    const shown = this.#shown(event.type === 'finished' ? this.#finished(event) : event)
    if (shown === null) return
    try {
      if (this.#view !== null) this.#view.push(shown)
      else this.#listener.onEvent(shown)
    } catch (error) {
      // A listener that throws at the end has not ended the client's response.
      if (event.type === 'finished') this.isOver = false
      throw error
    }
    if (this.#flow?.isHeld === true && !this.#isHeld) this.#waitForClient(this.#flow)
  }

  /** A stream that the gateway ends at a stop string has no usage of the worker, nor have those of some engines. */
  #finished({ usage }: Extract<GenerationEvent, { type: 'finished' }>): GenerationEvent {
    const estimate = usage === null ? (this.#unreported?.estimate(this.#source.request) ?? null) : null
    this.#count(usage)
    this.hasFinished = true
    this.isOver = true
    return { type: 'finished', usage: usage ?? estimate }
  }

  #shown(event: GenerationEvent): GenerationEvent | null {
    const named = event.type === 'tool_call' ? this.#named(event) : event
    if (this.maps === null) return named
    let shown: GenerationEvent | null = named
    for (const map of this.maps) if (shown !== null) shown = map(shown)
    // Without them, the listener would wait forever.
    return shown === null && (event.type === 'started' || event.type === 'finished') ? named : shown
  }

  /** @throws worker_extra_content_too_long */
  #named(event: Extract<GenerationEvent, { type: 'tool_call' }>): GenerationEvent {
    checkExtraContent(event.extraContent)
    const name = this.#source.attempt?.names.get(event.name)
    return name === undefined ? event : { ...event, name }
  }

  fail(error: GatewayError): void {
    if (this.isOver) return
    const { call } = this.#source
    if (!this.#hasEmitted && error.isRetryable && call?.tryElsewhere()) return
    // The call reports nothing if it has counted as complete already.
    call?.fail(error)
    this.failed(error)
  }

  stop(): void {
    const { call } = this.#source
    call?.finish()
    call?.abort()
  }

  /** Runs a step of the reader; an exception ends the generation. */
  read(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.unreadable(error)
    }
  }

  /** The reader cannot read the worker's response. @param error a GatewayError is reported as it is */
  unreadable(error: unknown): void {
    if (error instanceof GatewayError) this.fail(error)
    else this.fail(generationErrors.engine_unreadable.with({ cause: error }, messageOf(error)))
  }

  /** Passes on the answer of a hook, which fails unless it begins with `started` or `failed`. */
  replay(answer: GenerationAnswer): void {
    try {
      const type = answer.at(0)?.type ?? 'failed'
      if (type !== 'started' && type !== 'failed')
        throw new TypeError(`the answer of an onGeneration hook must begin with started (got ${type})`)
      for (const event of answer) {
        if (event.type === 'failed') this.failed(event.error)
        else this.emit(event)
      }
    } catch (error) {
      this.failed(error)
    }
    this.failed(generationErrors.generation_cut_off())
  }

  /** Ends the answer with an error, unless it has ended. */
  failed(cause: unknown): void {
    if (this.isOver) return
    this.#countSoFar()
    this.isOver = true
    const error = this.#parts.upstream.toGatewayError(this.#source.ctx, cause)
    if (this.#view !== null) this.#view.push({ type: 'failed', error })
    else this.#listener.onEvent({ type: 'failed', error })
  }

  /** A hook has thrown, also after the worker's last event. */
  #editFailed(error: unknown): void {
    this.#view = null
    this.isOver = false
    this.stop()
    this.failed(error)
  }

  /** The caller wants no more events. */
  close(): void {
    this.#countSoFar()
    this.isOver = true
    this.#view?.close()
  }

  // The upstream is paused for a slow client, for editors, and for a reader that has deferred work.

  #waitForClient(flow: FlowControl): void {
    this.#isHeld = true
    this.#source.call?.pause()
    flow.whenReleased(() => {
      this.#isHeld = false
      this.#goOn()
    })
  }

  #pauseForEdits(isFull: boolean): void {
    this.#isEditing = isFull
    if (isFull) this.#source.call?.pause()
    else this.#goOn()
  }

  defer(next: () => void): void {
    this.#deferred = next
    this.#source.call?.pause()
    this.#goOn()
  }

  /** Does nothing while something else holds the upstream. */
  #goOn(): void {
    if (this.#isHeld || this.#isEditing) return
    if (this.#deferred === null) this.#source.call?.resume()
    else setImmediate(this.#runDeferred)
  }

  readonly #runDeferred = (): void => {
    const next = this.#deferred
    if (next === null || this.#isHeld || this.#isEditing) return
    this.#deferred = null
    if (this.isOver) return
    this.read(next)
    if (this.#deferred === null) this.#goOn()
  }

  // Usage.

  /** Counts the stream of an attempt whose worker may not report its usage. */
  countStream(): void {
    const { counter, upstream } = this.#parts
    const model = this.#source.ctx.model ?? ''
    // Of an attempt that was given up.
    this.#unreported?.release()
    const isCounted = upstream.countsUsage && counter?.covers(model) === true
    this.#unreported = new UnreportedStream(isCounted ? counter : null, model)
  }

  /** Counts the usage of a generation that does not finish. */
  #countSoFar(): void {
    if (this.isOver || this.hasFinished || !this.#hasEmitted) return
    this.#count(this.#source.reader?.usage?.() ?? null)
  }

  #count(usage: GenerationUsage | null): void {
    const { call, request } = this.#source
    if (call === null) return
    if (usage !== null) call.used(toUsage(usage))
    else this.#unreported?.count(call, request)
    this.#unreported?.release()
    this.#unreported = null
  }
}

/** @throws worker_extra_content_too_long (502) */
function checkExtraContent(data: NativeObject | undefined): void {
  if (data !== undefined && !isShortExtraContent(data)) throw generationErrors.worker_extra_content_too_long()
}

function toUsage(usage: GenerationUsage): TokenUsage {
  const { inputTokens, outputTokens, cachedTokens, reasoningTokens, breakdown } = usage
  return {
    input: inputTokens,
    output: outputTokens,
    cached: cachedTokens,
    reasoning: reasoningTokens,
    breakdown,
  }
}
