/** Pipeline of one choice: decoded text, then reasoning, then calls, then the sink. @hot */
import type { OutputSink, OutputStream } from '#kernel'
import type { CallSink } from './calls/call-output.ts'
import type { CallReader } from './calls/call-reader.ts'
import { isBlank } from './scan/json-scanner.ts'

/** @returns the id of the call at an index of one message */
export type CallIds = (index: number, name: string) => string

/** Maximum length of buffered space at the beginning of an answer. */
const MAX_SPACE = 65_536

/** Assigns ids to calls, and drops space between reasoning and calls. */
export class AnswerSink implements CallSink {
  started = 0
  readonly #sink: OutputSink
  readonly #ids: CallIds
  readonly #maxCalls: number
  #space = ''
  #hasText = false

  constructor(sink: OutputSink, ids: CallIds, maxCalls: number) {
    this.#sink = sink
    this.#ids = ids
    this.#maxCalls = maxCalls
  }

  text(delta: string): void {
    if (this.#hasText) {
      this.#sink.text(delta)
      return
    }
    const whole = this.#space === '' ? delta : this.#space + delta
    if (isBlank(delta) && whole.length < MAX_SPACE) {
      this.#space = whole
      return
    }
    this.#space = ''
    this.#hasText = true
    this.#sink.text(whole)
  }

  callStarted(index: number, name: string): void {
    if (index >= this.#maxCalls) return
    this.started++
    this.#space = ''
    this.#sink.toolCallStarted(index, this.#ids(index, name), name)
  }

  callArguments(index: number, delta: string): void {
    if (index < this.#maxCalls) this.#sink.toolCallArguments(index, delta)
  }

  callDone(index: number, isComplete: boolean): void {
    if (index < this.#maxCalls) this.#sink.toolCallDone(index, isComplete)
  }
}

/** Separates the parts of an output and passes text of the answer to the reader of calls. */
export interface PartReader {
  readonly isReasoning: boolean
  push(text: string): void
  /** @param isFinished the model ended by a token of its own, which may have been the end of the part */
  end(isFinished: boolean): void
}

export class ParserStream implements OutputStream {
  readonly separatesReasoning: boolean
  readonly #parts: PartReader | null
  readonly #calls: CallReader
  readonly #answer: AnswerSink
  #isEnded = false

  /** @param parts null if all text is the answer */
  constructor(parts: PartReader | null, calls: CallReader, answer: AnswerSink, separates = parts !== null) {
    this.#parts = parts
    this.#calls = calls
    this.#answer = answer
    this.separatesReasoning = separates
  }

  get toolCalls(): number {
    return this.#answer.started
  }

  get isReasoning(): boolean {
    return this.#parts?.isReasoning ?? false
  }

  push(text: string): void {
    if (text === '' || this.#isEnded) return
    if (this.#parts === null) this.#calls.push(text)
    else this.#parts.push(text)
  }

  end(isFinished = false): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#parts?.end(isFinished)
    this.#calls.end()
  }
}

const JSON_START = /^\s*(?:\{\s*["}]|\[\s*["{[\]])/
const UNDECIDED = /^\s*[{[]?\s*$/
/** Maximum length of buffered space. */
const MAX_HELD = 64

/**
 * Stream of an engine that may reason before constrained JSON. Whether it reasons depends on how the engine was started,
 * which it need not report: an answer that begins as JSON has no reasoning.
 */
export class UndecidedStream implements OutputStream {
  readonly separatesReasoning = true
  readonly #open: (isJson: boolean) => OutputStream
  #held = ''
  #stream: OutputStream | null = null

  /** @param open creates the stream, once the beginning of the answer is known */
  constructor(open: (isJson: boolean) => OutputStream) {
    this.#open = open
  }

  get toolCalls(): number {
    return this.#stream?.toolCalls ?? 0
  }

  get isReasoning(): boolean {
    return this.#stream?.isReasoning ?? true
  }

  push(text: string): void {
    if (this.#stream !== null) {
      this.#stream.push(text)
      return
    }
    this.#held += text
    if (this.#held.length < MAX_HELD && UNDECIDED.test(this.#held)) return
    this.#begin()
  }

  end(isFinished?: boolean): void {
    const stream = this.#stream ?? this.#begin()
    stream.end(isFinished)
  }

  #begin(): OutputStream {
    const held = this.#held
    this.#held = ''
    const stream = this.#open(JSON_START.test(held))
    this.#stream = stream
    stream.push(held)
    return stream
  }
}
