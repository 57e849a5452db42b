/**
 * Relayed streams of chat and completions: whether they are complete, and what strict clients cannot read. A complete stream
 * without an end mark gets one; an answer that the engine aborted, and an error in another shape than the API's, become an error event in the shape of the API. @hot
 */
import {
  EventSplitter,
  type GatewayError,
  isObject,
  nextEventEnd,
  type RelayOptions,
  type RequestFacts,
  readRefusal,
  type StreamCompletionCheck,
  type StreamEnd,
} from '#kernel'
import { answerErrors, errorOfEvent, giveTail, isAbort, takeTail, tryParseJson } from '#shared'
import { DONE, endOfStream, inferenceErrorFormat, lacksDone } from './stream-end.ts'

const LF = 0x0a
const NO_BYTES = Buffer.alloc(0)
const DONE_BYTES = Buffer.from(DONE)
/** Without the quote before them: quotes are frequent in an event, so a search that begins with a letter is faster. */
const ABORT = Buffer.from('abort"')
const ERROR = Buffer.from('error')
/** The `event` field, before the data. */
const EVENT_NAME = /^event: ?([a-z]+)[\r\n]/m
const UNFINISHED = Buffer.from('"finish_reason":null')
/** A stream with a longer event is passed on unread from there on. */
const MAX_EVENT_BYTES = 1_048_576
/** From the finish reason to the end of an event. */
const MAX_QUIET_BYTES = 128
/** End of a whole answer that is searched for its finish reason. */
const BODY_END_BYTES = 1_024
const MAX_ERROR_TEXT = 1_000
const BAD_GATEWAY = 502

/** The last one that a stream of this thread had: those of an engine are alike. */
let lastQuietEnd: Buffer = NO_BYTES

class RelayedStream implements StreamCompletionCheck {
  readonly #request: RequestFacts
  readonly #tail = takeTail()
  /** Null until a chunk ends within an event. */
  #splitter: EventSplitter | null = null
  /** End of an event without a finish reason and without an error. */
  #quietEnd = lastQuietEnd
  /** The last events were quiet. */
  #isAfterQuiet = false
  /** Behind an event that is too long. */
  #isUnread = false
  #hasFailed = false
  #rest: Buffer = NO_BYTES

  constructor(request: RequestFacts) {
    this.#request = request
  }

  pass(chunk: Buffer): Buffer {
    if (this.#hasFailed) return NO_BYTES
    const events = this.#wholeEvents(chunk)
    if (events.length === 0) return events
    if (!this.#isUnread && this.#areQuiet(events)) {
      this.#isAfterQuiet = true
      return events
    }
    const passed = this.#isUnread ? events : this.#review(events)
    this.#pushTail(passed)
    return passed
  }

  /** Of quiet events the tail has the end of the last one. */
  #pushTail(bytes: Buffer): void {
    if (this.#isAfterQuiet) {
      this.#isAfterQuiet = false
      this.#tail.clear()
      this.#tail.push(this.#quietEnd)
    }
    this.#tail.push(bytes)
  }

  #wholeEvents(chunk: Buffer): Buffer {
    if (this.#isUnread) return chunk
    const splitter = this.#splitter
    const endsInEvent = chunk[chunk.length - 1] === LF && chunk[chunk.length - 2] === LF
    if (endsInEvent && (splitter === null || splitter.waitingBytes === 0)) return chunk
    this.#splitter ??= new EventSplitter()
    const events = this.#splitter.push(chunk)
    if (this.#splitter.waitingBytes <= MAX_EVENT_BYTES) return events
    this.#isUnread = true
    return Buffer.concat([events, this.#splitter.takeRest()])
  }

  /**
   * True for events of one line that end like an earlier one, without a finish reason: a comparison is faster than a search.
   * bench: relay-sse
   */
  #areQuiet(events: Buffer): boolean {
    for (let start = 0; start < events.length; ) {
      const end = events.indexOf(LF, start) + 2
      if (end < 2 || events[end - 1] !== LF || !this.#endsAlike(events, start, end)) return false
      start = end
    }
    return true
  }

  #endsAlike(events: Buffer, start: number, end: number): boolean {
    const quiet = this.#quietEnd
    const at = end - quiet.length
    if (quiet.length === 0 || at < start) return false
    for (let i = quiet.length - 1; i >= 0; i--) if (events[at + i] !== quiet[i]) return false
    return true
  }

  /** @returns the events up to the first that fails the stream, with an error event in its place */
  #review(events: Buffer): Buffer {
    if (!events.includes(ABORT) && !events.includes(ERROR)) {
      this.#learn(events)
      return events
    }
    for (let start = 0; start < events.length; ) {
      const next = nextEventEnd(events, start)
      const end = next < 0 ? events.length : next
      const error = errorOfChunk(events.toString('utf8', start, end))
      if (error !== null) {
        this.#hasFailed = true
        const last = Buffer.from(inferenceErrorFormat.lastEvents(error, this.#request))
        return Buffer.concat([events.subarray(0, start), last])
      }
      start = end
    }
    return events
  }

  #learn(events: Buffer): void {
    if (this.#endsAlike(events, 0, events.length)) return
    const at = events.lastIndexOf(UNFINISHED)
    if (at < 0 || events.length - at > MAX_QUIET_BYTES) return
    this.#quietEnd = Buffer.from(events.subarray(at))
    lastQuietEnd = this.#quietEnd
  }

  end(): StreamEnd {
    if (this.#hasFailed) return 'error'
    if (this.#splitter !== null && this.#splitter.waitingBytes > 0) {
      this.#rest = this.#review(this.#splitter.takeRest())
      this.#pushTail(this.#rest)
    }
    if (this.#hasFailed) return 'error'
    this.#pushTail(NO_BYTES)
    const tail = this.#tail.bytes()
    const end = endOfStream(tail)
    if (end === 'complete' && lacksDone(tail)) this.#rest = Buffer.concat([this.#rest, DONE_BYTES])
    return end
  }

  rest(): Buffer {
    return this.#rest
  }

  leave(): void {
    giveTail(this.#tail)
  }
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

function hasAborted({ choices }: Readonly<Record<string, unknown>>): boolean {
  return Array.isArray(choices) && choices.some((choice) => isObject(choice) && isAbort(choice.finish_reason))
}

function errorOfBody(body: Buffer): GatewayError | null {
  const end = body.subarray(-BODY_END_BYTES)
  if (!end.includes(ABORT) && !end.includes(ERROR)) return null
  const answer = tryParseJson(body.toString('utf8'))
  return isObject(answer) && hasAborted(answer) ? answerErrors.worker_aborted() : null
}

/** What is checked of answers that are relayed. */
export const relayedAnswer = {
  checkCompletion: (request) => new RelayedStream(request),
  checkBody: errorOfBody,
} as const satisfies Pick<RelayOptions, 'checkCompletion' | 'checkBody'>
