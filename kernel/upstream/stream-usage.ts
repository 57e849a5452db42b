/**
 * Reads the token usage of a relayed event stream, and removes the event that carries it if the client did not request it,
 * as well as the `"usage": null` of other events.
 * Events are looked at whole, so that the result does not depend on how the worker's bytes are split. @hot
 */

import type { UsageReport } from '../contracts/relay-options.ts'
import type { TokenUsage } from '../contracts/request.ts'
import type { UsageEstimator } from '../contracts/upstream.ts'
import { EventSplitter, nextEventEnd } from '../wire/event-splitter.ts'
import { isObject } from '../wire/is-object.ts'
import type { ChoiceScope } from './choice-usage.ts'
import { ChunkShape } from './chunk-shape.ts'
import { StreamedText } from './streamed-text.ts'
import { findUsage, jsonOfEvent, sumOfUsage, usageOfEvent, usageOfMetaInfo } from './token-usage.ts'
import { largestBreakdown } from './usage-breakdown.ts'

const LF = 0x0a
const META_INFO = Buffer.from('"meta_info"')
/** Once in each event with output: of chat and completions, and of other formats. */
const CHOICES = Buffer.from('"choices"')
const DELTA = Buffer.from('"delta"')
/** Shorter events, such as `data: [DONE]`, have neither output nor usage. */
const MIN_EVENT_BYTES = 20
/** Of the first event of chat, which has no output. */
const ROLE = Buffer.from('"role"')
const INDEX = /"index"\s?:\s?(\d{1,4})/
/** A stream with a longer event is passed on as it is from there on, and its usage is estimated. */
const MAX_EVENT_BYTES = 1_048_576
/** Usage of further choices is ignored. */
const MAX_CHOICES = 1_024
const NO_BYTES = Buffer.alloc(0)

export class StreamUsage {
  readonly #isMetaInfo: boolean
  readonly #removes: boolean
  readonly #scope: ChoiceScope | null
  /** Engines may report cumulative usage in every chunk of chat: only the last one is read. */
  readonly #readsLast: boolean
  /** Chat and completions. */
  readonly #isChunks: boolean
  /** Of the last event with output that was examined; null before the first. */
  #shape: ChunkShape | null = null
  /** The first event with choices has been counted. */
  #hasBegun = false
  /** Position of the output's marker in its line in other formats; -1 before the first. The lines of a stream begin alike. */
  #markerAt = -1
  /** Null until a chunk ends within an event. */
  #splitter: EventSplitter | null = null
  /** Size of the request's body, for the estimate of its prompt. */
  readonly bodyBytes: number
  /** Null without a tokenizer of the model. */
  readonly estimator: UsageEstimator | null
  /** What the estimator counts. */
  readonly text: StreamedText | null
  /** Events with output so far; engines send about one token in each. */
  outputEvents = 0
  /** The worker has reported the output, in a last event or in each. */
  isReported = false
  /** Bytes that were passed on unread, behind an event that is too long. */
  unreadBytes = 0
  /** Last event with usage that is not read yet. */
  #unread: Buffer | null = null
  #read: TokenUsage | null = null
  /** By answer, for streams of several answers that report each apart. */
  #byIndex: Map<string, TokenUsage> | null = null

  /**
   * @param removes whether the event that carries nothing but usage is removed
   * @param bodyBytes size of the request's body
   * @param scope of the choices, if the engine reports each apart; else null
   */
  constructor(
    report: UsageReport,
    removes: boolean,
    bodyBytes = 0,
    estimator: UsageEstimator | null = null,
    scope: ChoiceScope | null = null,
  ) {
    this.#isMetaInfo = report === 'meta_info'
    this.#removes = removes
    this.#readsLast = report === 'on_request' && !removes && scope === null
    this.#scope = scope
    this.#isChunks = report === 'on_request'
    this.bodyBytes = bodyBytes
    this.estimator = estimator
    this.text = estimator === null ? null : new StreamedText()
  }

  /**
   * @param chunk valid during the call; its bytes may change
   * @returns the bytes for the client; empty if there are none yet. bench: relay-sse
   */
  pass(chunk: Buffer): Buffer {
    this.text?.push(chunk)
    if (this.unreadBytes > 0) {
      this.unreadBytes += chunk.length
      return chunk
    }
    let events = chunk
    if (
      chunk[chunk.length - 1] !== LF ||
      chunk[chunk.length - 2] !== LF ||
      (this.#splitter !== null && this.#splitter.waitingBytes > 0)
    ) {
      this.#splitter ??= new EventSplitter()
      events = this.#splitter.push(chunk)
      if (this.#splitter.waitingBytes > MAX_EVENT_BYTES) {
        const rest = this.#splitter.takeRest()
        this.unreadBytes = rest.length
        return this.#removes ? Buffer.concat([this.#scan(events), rest]) : chunk
      }
    }
    const kept = this.#scan(events)
    return this.#removes ? kept : chunk
  }

  /** Bytes that are held back at the end of the stream. */
  rest(): Buffer {
    if (!this.#removes || this.#splitter === null) return NO_BYTES
    return this.#scan(Buffer.from(this.#splitter.takeRest()))
  }

  /** Usage so far; null if the worker has not reported any. */
  usage(): TokenUsage | null {
    if (this.#unread !== null) this.#take(this.#unread)
    this.#unread = null
    return this.#read
  }

  /** @returns the events that the client gets */
  #scan(events: Buffer): Buffer {
    if (this.#isChunks) return this.#scanChunks(events)
    if (!this.isReported) this.#countDeltas(events)
    const first = this.#find(events, 0)
    if (first >= 0) this.#takeFrom(events, first)
    return events
  }

  /** Chat and completions. What is removed is overwritten by what follows it. */
  #scanChunks(events: Buffer): Buffer {
    let kept = 0
    let start = 0
    while (start < events.length) {
      let shape = this.#shape
      let end = shape === null ? -1 : shape.endOf(events, start)
      let isKept = true
      if (end >= 0) {
        this.outputEvents++
        this.#hasBegun = true
      } else {
        shape = null
        end = endOfEvent(events, start)
        if (end - start >= MIN_EVENT_BYTES) {
          const event = events.subarray(start, end)
          const hasUsage = findUsage(event, 0) >= 0
          if (!hasUsage) shape = ChunkShape.of(event)
          if (shape !== null) this.#shape = shape
          if (!this.isReported && (shape !== null || event.includes(CHOICES))) this.#countChunk(event)
          if (hasUsage) isKept = !this.#takeChunk(event) || !this.#removes
        }
      }
      if (isKept) kept = this.#keep(events, start, end, kept, shape)
      start = end
    }
    return kept === events.length ? events : events.subarray(0, kept)
  }

  /**
   * Moves an event to the end of the kept ones, without a `"usage": null` that the client did not ask for.
   *
   * @param shape of the event; null if it has none
   * @returns new end of the kept events
   */
  #keep(events: Buffer, start: number, end: number, kept: number, shape: ChunkShape | null): number {
    const removed = shape !== null && this.#removes ? shape.nullBytes : 0
    if (removed === 0) {
      if (kept < start) events.copyWithin(kept, start, end)
      return kept + end - start
    }
    const nullAt = end - (shape?.nullBack ?? 0)
    if (kept < start) events.copyWithin(kept, start, nullAt)
    const restAt = kept + nullAt - start
    events.copyWithin(restAt, nullAt + removed, end)
    return restAt + end - nullAt - removed
  }

  #countChunk(event: Buffer): void {
    if (this.#hasBegun || !event.includes(ROLE)) this.outputEvents++
    this.#hasBegun = true
  }

  /** @returns true if it is removed */
  #takeChunk(event: Buffer): boolean {
    if (!this.#readsLast) return this.#take(event)
    this.#unread = Buffer.from(event)
    this.isReported = true
    return false
  }

  #countDeltas(events: Buffer): void {
    let at = this.#isMarkedAlike(events) ? this.#markerAt : events.indexOf(DELTA)
    if (this.#markerAt < 0) this.#markerAt = at < 0 ? at : at - events.lastIndexOf(LF, at) - 1
    while (at >= 0) {
      this.outputEvents++
      // What is left is too short for another event.
      if (events.length - at < this.#markerAt) return
      at = events.indexOf(DELTA, at + DELTA.length)
    }
  }

  /** True if the first line has the marker where the line of the first output had it: saves a search. bench: relay-sse */
  #isMarkedAlike(events: Buffer): boolean {
    const start = this.#markerAt
    if (start < 0) return false
    for (let i = 0; i < DELTA.length; i++) if (events[start + i] !== DELTA[i]) return false
    return true
  }

  #find(events: Buffer, from: number): number {
    return this.#isMetaInfo ? events.indexOf(META_INFO, from) : findUsage(events, from)
  }

  #takeFrom(events: Buffer, first: number): void {
    let start = 0
    for (let at = first; at >= 0; at = this.#find(events, start)) {
      let end = start
      while (end <= at) {
        start = end
        const next = nextEventEnd(events, start)
        end = next < 0 ? events.length : next
      }
      const event = events.subarray(start, end)
      if (this.#isMetaInfo) this.#takeMetaInfo(event)
      else this.#take(event)
      start = end
    }
  }

  /** @returns true for an event of usage alone: a chunk of chat or completions without choices */
  #take(event: Buffer): boolean {
    const json = jsonOfEvent(event)
    const usage = json === null ? null : usageOfEvent(json)
    if (json === null || usage === null) return false
    if (this.#scope !== null) this.#addChoice(json, usage)
    else this.#read = this.#read === null ? usage : largest(this.#read, usage)
    // The `message_start` of Messages has the input alone.
    if (!isObject(json.message)) this.isReported = true
    return Array.isArray(json.choices) && json.choices.length === 0
  }

  /** Usage in the last chunk of a choice, or in an event of its own for each choice. */
  #addChoice({ choices }: Record<string, unknown>, usage: TokenUsage): void {
    const [choice] = Array.isArray(choices) ? choices : []
    this.#byIndex ??= new Map()
    if (this.#byIndex.size < MAX_CHOICES)
      this.#byIndex.set(isObject(choice) ? String(choice.index) : `event ${this.#byIndex.size}`, usage)
    const sum = [...this.#byIndex.values()].reduce(sumOfUsage)
    this.#read = this.#scope === 'prompts' ? sum : { ...sum, input: usage.input, cached: usage.cached }
  }

  /** The counts of each event replace those of the event before. */
  #takeMetaInfo(event: Buffer): void {
    const usage = usageOfMetaInfo(event)
    if (usage === null) return
    this.isReported = true
    const index = INDEX.exec(event.toString('latin1'))?.[1] ?? '0'
    this.#byIndex ??= new Map()
    this.#byIndex.set(index, usage)
    this.#read = [...this.#byIndex.values()].reduce(sumOfUsage)
  }
}

/** End of the first event; of all events if it is not complete. */
function endOfEvent(events: Buffer, start: number): number {
  const next = nextEventEnd(events, start)
  return next < 0 ? events.length : next
}

/** Counts of a stream are cumulative; an event may leave out those of an earlier one. */
function largest(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    input: Math.max(a.input, b.input),
    output: Math.max(a.output, b.output),
    cached: Math.max(a.cached, b.cached),
    reasoning: Math.max(a.reasoning, b.reasoning),
    breakdown: largestBreakdown(a.breakdown, b.breakdown),
  }
}
