/**
 * Relayed streams of chat and completions, in one pass: whether they are complete, their usage, and what clients cannot read
 * or did not ask for. A complete stream without an end mark gets one; an answer that the engine aborted, and an error in
 * another shape than the API's, become an error event in the shape of the API. @hot
 */
import {
  EventSplitter,
  findUsage,
  type GatewayError,
  hasCarriageReturn,
  isObject,
  jsonOfEvent,
  largestUsage,
  nextEventEnd,
  type ObservedEnd,
  type ObservedResponse,
  type RequestFacts,
  type ResponseObserver,
  readRefusal,
  type TokenUsage,
  usageOfEvent,
} from '#kernel'
import {
  answerErrors,
  errorOfEvent,
  giveTail,
  isAbort,
  MAX_EVENT_BYTES,
  takeTail,
  tryParseJson,
} from '#shared'
import { ChunkShape } from './chunk-shape.ts'
import { DONE, endOfStream, inferenceErrorFormat, lacksDone } from './stream-end.ts'

const LF = 0x0a
const NO_BYTES = Buffer.alloc(0)
const DONE_BYTES = Buffer.from(DONE)
/** Without the quote before them: quotes are frequent in an event, so a search that begins with a letter is faster. */
export const ABORT = Buffer.from('abort"')
export const ERROR = Buffer.from('error')
/** Once in each event with output. */
const CHOICES = Buffer.from('"choices"')
/** Of the first event of chat, which has no output. */
const ROLE = Buffer.from('"role"')
/** Shorter events, such as `data: [DONE]`, have neither output nor usage. */
const MIN_EVENT_BYTES = 20
/** The `event` field, before the data. */
const EVENT_NAME = /^event: ?([a-z]+)[\r\n]/m
const MAX_ERROR_TEXT = 1_000
const BAD_GATEWAY = 502

export class ChatObserver implements ResponseObserver {
  readonly #request: RequestFacts
  /** The event that carries nothing but usage, and the `"usage": null` of others, are removed. */
  readonly #removes: boolean
  readonly #tail = takeTail()
  /** Null until a chunk ends within an event. */
  #splitter: EventSplitter | null = null
  /** Shape of the last output event that was examined; null before the first. */
  #shape: ChunkShape | null = null
  /** The last events were quiet: the tail has not got them. */
  #isAfterQuiet = false
  /** The first event with choices has been counted. */
  #hasBegun = false
  #hasFailed = false
  #outputEvents = 0
  /** Bytes that were passed on unread, behind an event that is too long. */
  #unreadBytes = 0
  #hasOutputUsage = false
  /** Engines may report cumulative usage in every chunk: only the last one is read. */
  #lastWithUsage: Buffer | null = null
  #usage: TokenUsage | null = null

  constructor(response: ObservedResponse) {
    this.#request = response.request
    this.#removes = response.removesUsage
  }

  /** bench: relay-sse */
  chunk(bytes: Buffer): Buffer {
    if (this.#hasFailed) return NO_BYTES
    if (this.#unreadBytes > 0) return this.#passUnread(bytes)
    const { length } = bytes
    const isWhole = bytes[length - 1] === LF && bytes[length - 2] === LF
    if (isWhole && (this.#splitter === null || this.#splitter.waitingBytes === 0)) return this.#scan(bytes)
    this.#splitter ??= new EventSplitter()
    const events = this.#scan(this.#splitter.push(bytes))
    if (this.#splitter.waitingBytes <= MAX_EVENT_BYTES || this.#hasFailed) return events
    return Buffer.concat([events, this.#passUnread(this.#splitter.takeRest())])
  }

  end(): ObservedEnd {
    const waiting = this.#hasFailed ? NO_BYTES : (this.#splitter?.takeRest() ?? NO_BYTES)
    let rest = waiting.length === 0 ? NO_BYTES : this.#scan(waiting)
    this.#pushTail(NO_BYTES)
    const tail = this.#tail.bytes()
    const end = this.#hasFailed ? 'error' : endOfStream(tail)
    if (end === 'complete' && lacksDone(tail)) rest = Buffer.concat([rest, DONE_BYTES])
    giveTail(this.#tail)
    if (this.#lastWithUsage !== null) this.#takeUsage(this.#lastWithUsage)
    const [usage, hasOutputUsage] = [this.#usage, this.#hasOutputUsage]
    return {
      end,
      rest,
      usage,
      hasOutputUsage,
      outputEvents: this.#outputEvents,
      unreadBytes: this.#unreadBytes,
    }
  }

  #passUnread(bytes: Buffer): Buffer {
    this.#unreadBytes += bytes.length
    this.#pushTail(bytes)
    return bytes
  }

  /** Of quiet events the tail has the end of the last one. */
  #pushTail(bytes: Buffer): void {
    if (this.#isAfterQuiet && this.#shape !== null) {
      this.#isAfterQuiet = false
      this.#tail.clear()
      this.#tail.push(this.#shape.tail)
    }
    this.#tail.push(bytes)
  }

  /** @returns the events that the client gets: what is removed is overwritten by what follows it */
  #scan(events: Buffer): Buffer {
    let kept = 0
    let mayFail: boolean | null = null
    let hasCr: boolean | null = null
    for (let start = 0; start < events.length; ) {
      const known = this.#shape
      let end = known === null ? -1 : known.endOf(events, start)
      let shape = end < 0 ? null : known
      if (shape?.isQuiet === true) {
        this.#outputEvents++
        this.#hasBegun = true
        this.#isAfterQuiet = true
      } else {
        if (end < 0) {
          hasCr ??= hasCarriageReturn(events)
          end = endOfEvent(events, start, hasCr)
        }
        const event = events.subarray(start, end)
        mayFail ??= events.includes(ABORT, start) || events.includes(ERROR, start)
        const error = mayFail ? errorOfChunk(event.toString('utf8')) : null
        if (error !== null) return this.#failed(events.subarray(0, kept), error)
        const hasUsage = shape === null && end - start >= MIN_EVENT_BYTES && findUsage(event, 0) >= 0
        if (hasUsage && this.#takeChunk(event) && this.#removes) {
          start = end
          continue
        }
        this.#pushTail(event)
        shape ??= hasUsage || end - start < MIN_EVENT_BYTES ? null : ChunkShape.of(event)
        if (shape !== null) this.#shape = shape
        if (!this.#hasOutputUsage || shape !== null) this.#count(event, shape !== null)
      }
      kept = this.#keep(events, start, end, kept, shape)
      start = end
    }
    return kept === events.length ? events : events.subarray(0, kept)
  }

  /** @returns the events before, with an error event in place of the one that fails the stream */
  #failed(before: Buffer, error: GatewayError): Buffer {
    this.#hasFailed = true
    return Buffer.concat([before, Buffer.from(inferenceErrorFormat.lastEvents(error, this.#request))])
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

  #count(event: Buffer, isOutput: boolean): void {
    if (!isOutput && !event.includes(CHOICES)) return
    if (this.#hasBegun || !event.includes(ROLE)) this.#outputEvents++
    this.#hasBegun = true
  }

  /** @returns true for an event of usage alone */
  #takeChunk(event: Buffer): boolean {
    if (this.#removes) return this.#takeUsage(event)
    this.#lastWithUsage = Buffer.from(event)
    this.#count(event, false)
    this.#hasOutputUsage = true
    return false
  }

  /** @returns true for an event of usage alone: a chunk without choices */
  #takeUsage(event: Buffer): boolean {
    if (!this.#hasOutputUsage) this.#count(event, false)
    const json = jsonOfEvent(event)
    const usage = json === null ? null : usageOfEvent(json)
    if (json === null || usage === null) return false
    this.#usage = this.#usage === null ? usage : largestUsage(this.#usage, usage)
    this.#hasOutputUsage = true
    return Array.isArray(json.choices) && json.choices.length === 0
  }
}

/** End of the first event; of all events if it is not complete. */
function endOfEvent(events: Buffer, start: number, hasCr: boolean): number {
  const next = nextEventEnd(events, start, hasCr)
  return next < 0 ? events.length : next
}

/** The error that the client gets in place of a chunk; null for a chunk that every client can read. */
function errorOfChunk(event: string): GatewayError | null {
  const start = event.indexOf('{')
  const json = event.slice(start, event.lastIndexOf('}') + 1)
  const name = EVENT_NAME.exec(event)?.[1] ?? null
  const chunk = tryParseJson(json)
  if (!isObject(chunk)) return name === 'error' ? answerErrors.worker_refused(textOf(event)) : null
  const isAborted = hasAborted(chunk)
  const said = errorOfEvent(chunk, name)
  if (said === null) return isAborted ? answerErrors.worker_aborted() : null
  const { isReadable, message, code, param, type } = readRefusal(BAD_GATEWAY, Buffer.from(json))
  return isReadable && !isAborted ? null : answerErrors.worker_refused.with({ code, param, type }, message)
}

/** The data of an event. */
function textOf(event: string): string {
  return event
    .replace(/^(?:event: ?.*|data: ?)/gm, '')
    .trim()
    .slice(0, MAX_ERROR_TEXT)
}

export function hasAborted({ choices }: Readonly<Record<string, unknown>>): boolean {
  return Array.isArray(choices) && choices.some((choice) => isObject(choice) && isAbort(choice.finish_reason))
}
