/** Splits the output: reasoning goes to the sink, the answer to the reader of calls. A call in reasoning that never ends belongs to the answer. @hot */
import type { OutputSink } from '#kernel'
import { type CallOptions, CallOutput, type CallSink } from '../calls/call-output.ts'
import type { CallReader } from '../calls/call-reader.ts'
import { ALL_TEXT, type ToolFormat } from '../formats/tool-format.ts'
import type { ReasoningSink } from './reasoning-reader.ts'

export class AnswerInput implements ReasoningSink {
  readonly #sink: Pick<OutputSink, 'reasoning'>
  readonly #calls: CallReader
  readonly #openProbe: () => CallProbe | null
  /** Of the current reasoning. */
  #probe: CallProbe | null = null

  /** @param format null if calls are not looked for in reasoning */
  constructor(
    sink: Pick<OutputSink, 'reasoning'>,
    calls: CallReader,
    format: ToolFormat | null,
    options: CallOptions,
  ) {
    this.#sink = sink
    this.#calls = calls
    this.#openProbe = () => (format === null ? null : new CallProbe(sink, format, options))
  }

  reasoning(delta: string): void {
    this.#probe ??= this.#openProbe()
    if (this.#probe === null) this.#sink.reasoning(delta)
    else this.#probe.push(delta)
  }

  /** A call in reasoning that has ended was only considered by the model. */
  reasoningEnded(): void {
    const rest = this.#probe?.pending ?? ''
    this.#probe = null
    if (rest !== '') this.#sink.reasoning(rest)
  }

  text(delta: string): void {
    this.#calls.push(delta)
  }

  /** The reader of calls ends after it. */
  end(): void {
    if (this.#probe?.hasCall === true) this.#calls.push(this.#probe.pending)
    else this.reasoningEnded()
  }
}

/** Looks for calls in reasoning: passes on the text before the first call, and holds back everything from there on. */
class CallProbe implements CallSink {
  hasCall = false
  /** Text not passed on. */
  pending = ''
  readonly #sink: Pick<OutputSink, 'reasoning'>
  readonly #out: CallOutput
  readonly #reader: CallReader

  constructor(sink: Pick<OutputSink, 'reasoning'>, format: ToolFormat, options: CallOptions) {
    this.#sink = sink
    this.#out = new CallOutput(this, ALL_TEXT, options)
    this.#reader = format.open(this.#out)
  }

  push(text: string): void {
    this.pending += text
    if (!this.hasCall) this.#reader.push(text)
  }

  text(delta: string): void {
    if (this.hasCall) return
    this.pending = this.pending.slice(delta.length)
    this.#sink.reasoning(delta)
  }

  callStarted(): void {
    this.hasCall = true
  }

  callArguments(): void {}

  callDone(): void {}
}
