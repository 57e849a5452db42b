import {
  type EngineReader,
  type EngineSink,
  EventSplitter,
  type GatewayError,
  type HeaderList,
  hasCarriageReturn,
  isPlainEventStream,
  type JsonObject,
  nextEventEnd,
  type WorkerMessage,
} from '#kernel'
import { readEvent } from '../formats/sse-event.ts'
import { answerErrors, errorOfEvent, readStreamEvent } from './answer-errors.ts'

/** The beginning of a body, up to a limit. */
export class BodyExcerpt {
  readonly #maxBytes: number
  readonly #chunks: Buffer[] = []
  #byteCount = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Whether the body exceeds the limit. */
  get isFull(): boolean {
    return this.#byteCount > this.#maxBytes
  }

  /** @param chunk copied, unless the excerpt is full */
  push(chunk: Buffer): void {
    if (!this.isFull) this.#chunks.push(Buffer.from(chunk))
    this.#byteCount += chunk.length
  }

  bytes(): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks)
    return all.length > this.#maxBytes ? all.subarray(0, this.#maxBytes) : all
  }
}

export interface AnswerLimits {
  /** Maximum size of a complete body, or of one event of a stream, in bytes. */
  readonly maxAnswerBytes: number
}

/** Chooses the reader by content type, because engines may not stream although it was requested. */
export class AnswerReader implements EngineReader {
  readonly #streamed: () => EngineReader
  readonly #whole: () => EngineReader
  #reader: EngineReader | null = null

  constructor(streamed: () => EngineReader, whole: () => EngineReader) {
    this.#streamed = streamed
    this.#whole = whole
  }

  onStart(headers: HeaderList): void {
    this.#reader = isPlainEventStream(headers) ? this.#streamed() : this.#whole()
  }

  onData(chunk: Buffer): void {
    this.#reader?.onData(chunk)
  }

  onEnd(): void {
    this.#reader?.onEnd()
  }
}

/** Collects a complete body within a size limit. */
export class WholeAnswerReader implements EngineReader {
  readonly #sink: EngineSink
  readonly #maxBytes: number
  readonly #body: BodyExcerpt
  readonly #onText: (text: string) => void

  /** @param onText passes the body to the sink; an exception fails the answer */
  constructor(sink: EngineSink, maxBytes: number, onText: (text: string) => void) {
    this.#sink = sink
    this.#maxBytes = maxBytes
    this.#body = new BodyExcerpt(maxBytes)
    this.#onText = onText
  }

  onStart(): void {}

  onData(chunk: Buffer): void {
    this.#body.push(chunk)
    if (this.#body.isFull) this.#sink.fail(answerErrors.worker_answer_too_long(this.#maxBytes))
  }

  onEnd(): void {
    this.#onText(this.#body.bytes().toString('utf8'))
  }
}

/** Base of readers of event streams: splits the stream into events within a size limit. @hot */
export abstract class EventAnswerReader implements EngineReader {
  protected readonly sink: EngineSink
  readonly #splitter = new EventSplitter()
  readonly #maxEventBytes: number
  #isFirst = true
  #isOver = false

  constructor(sink: EngineSink, maxEventBytes: number) {
    this.sink = sink
    this.#maxEventBytes = maxEventBytes
  }

  /**
   * Processes one event.
   * @param data never empty
   * @param name the `event` field; null if there is none
   * @returns true if the answer has finished or failed
   * @throws SyntaxError for incomplete data
   */
  protected abstract take(data: string, name: string | null): boolean

  /** Called if the stream ends without a final event; the answer is truncated unless the format says otherwise. */
  protected ended(): void {}

  onStart(): void {}

  onData(chunk: Buffer): void {
    if (this.#isOver) return
    const events = this.#splitter.push(chunk)
    const hasCr = hasCarriageReturn(events)
    for (let at = 0; at < events.length && !this.#isOver; ) {
      const next = nextEventEnd(events, at, hasCr)
      const end = next < 0 ? events.length : next
      this.#read(at === 0 && end === events.length ? events : events.subarray(at, end))
      at = end
    }
    if (this.#splitter.waitingBytes > this.#maxEventBytes) {
      this.#isOver = true
      this.sink.fail(answerErrors.worker_answer_too_long(this.#maxEventBytes))
    }
  }

  #read(bytes: Buffer): void {
    const event = readEvent(this.#isFirst ? withoutByteOrderMark(bytes) : bytes)
    this.#isFirst = false
    if (event !== null && event.data !== '') this.#isOver = this.take(event.data, event.name)
  }

  /** Accepts a last event without its empty line; ignores an incomplete one. */
  onEnd(): void {
    const rest = this.#splitter.takeRest()
    if (this.#isOver) return
    try {
      if (rest.length > 0) this.#read(rest)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
    }
    if (!this.#isOver) this.ended()
  }
}

const BYTE_ORDER_MARK = Buffer.from('\ufeff')

/** A stream may begin with one, which is not part of its first line. @source WHATWG HTML, Server-sent events */
function withoutByteOrderMark(bytes: Buffer): Buffer {
  const { length } = BYTE_ORDER_MARK
  return bytes.subarray(0, length).equals(BYTE_ORDER_MARK) ? bytes.subarray(length) : bytes
}

/** One answer in a format whose events and bodies are JSON. */
export interface JsonAnswer {
  /** Processes an event that reports no error. @param text its JSON. @returns true if the answer has finished or failed */
  addEvent(event: JsonObject, text: string): boolean
  /** Processes the JSON of an event that is recognized without reading it. @returns as `addEvent`; null if it is not */
  addKnown?(text: string): boolean | null
  /** Processes a complete body. @throws for a body that cannot be read */
  addWhole(text: string): void
  /** The client's error for one that an event reports. */
  toError(error: WorkerMessage): GatewayError
  /** Processes `[DONE]`, which is ignored by default. @returns as `addEvent` */
  addDone?(): boolean
  /** The stream has ended without a final event: by default the answer is truncated. */
  endStream?(): void
}

const DONE = '[DONE]'

class JsonEventReader extends EventAnswerReader {
  readonly #answer: JsonAnswer

  constructor(answer: JsonAnswer, sink: EngineSink, maxEventBytes: number) {
    super(sink, maxEventBytes)
    this.#answer = answer
  }

  protected override take(data: string, name: string | null): boolean {
    if (data === DONE) return this.#answer.addDone?.() ?? false
    const isOver = name === 'error' ? null : (this.#answer.addKnown?.(data) ?? null)
    if (isOver !== null) return isOver
    const event = readStreamEvent(data, name)
    const error = errorOfEvent(event, name)
    if (error === null) return this.#answer.addEvent(event, data)
    this.sink.fail(this.#answer.toError(error))
    return true
  }

  protected override ended(): void {
    this.#answer.endStream?.()
  }
}

/** @param maxBytes of a complete body, or of one event of a stream */
export function jsonAnswerReader(answer: JsonAnswer, sink: EngineSink, maxBytes: number): EngineReader {
  return new AnswerReader(
    () => new JsonEventReader(answer, sink, maxBytes),
    () => new WholeAnswerReader(sink, maxBytes, (text) => answer.addWhole(text)),
  )
}
