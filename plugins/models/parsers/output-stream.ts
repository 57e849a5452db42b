/** One choice's way from decoded text through reasoning and calls to the sink. @hot */
import type { OutputSink, OutputStream } from '#kernel'
import type { CallIds } from './call-ids.ts'
import type { CallSink } from './calls/call-output.ts'
import type { CallReader } from './calls/call-reader.ts'
import type { ReasoningReader, ReasoningSink } from './reasoning/reasoning-reader.ts'
import { isSpace } from './scan/json-scanner.ts'

/** Space at the beginning of an answer that is held back at most. */
const MAX_SPACE = 65_536

/** Gives calls their ids, and keeps space that stands between reasoning and calls to itself. */
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

/** What has been separated from reasoning goes on to the reader of calls. */
export class AnswerInput implements ReasoningSink {
  readonly #sink: Pick<OutputSink, 'reasoning'>
  readonly #calls: CallReader

  constructor(sink: Pick<OutputSink, 'reasoning'>, calls: CallReader) {
    this.#sink = sink
    this.#calls = calls
  }

  reasoning(delta: string): void {
    this.#sink.reasoning(delta)
  }

  text(delta: string): void {
    this.#calls.push(delta)
  }
}

export class ParserStream implements OutputStream {
  readonly #reasoning: ReasoningReader | null
  readonly #calls: CallReader
  readonly #answer: AnswerSink
  #isEnded = false

  constructor(reasoning: ReasoningReader | null, calls: CallReader, answer: AnswerSink) {
    this.#reasoning = reasoning
    this.#calls = calls
    this.#answer = answer
  }

  get toolCalls(): number {
    return this.#answer.started
  }

  get isReasoning(): boolean {
    return this.#reasoning?.isInside ?? false
  }

  get separatesReasoning(): boolean {
    return this.#reasoning !== null
  }

  push(text: string): void {
    if (text === '' || this.#isEnded) return
    if (this.#reasoning === null) this.#calls.push(text)
    else this.#reasoning.push(text)
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#reasoning?.end()
    this.#calls.end()
  }
}

function isBlank(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!isSpace(text.charCodeAt(i))) return false
  return true
}
