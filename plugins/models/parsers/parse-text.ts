/** Parses the whole text of an output: its tool calls, or its reasoning. */
import { type CallOptions, CallOutput, type CallSink } from './calls/call-output.ts'
import type { ToolFormat } from './formats/tool-format.ts'
import type { ReasoningSink } from './reasoning/reasoning-reader.ts'
import type { ReasoningFormat } from './reasoning/reasoning-table.ts'

/** A call with its arguments as JSON text. */
export interface ParsedCall {
  readonly name: string
  readonly arguments: string
}

export interface ParsedCalls {
  readonly text: string
  readonly calls: readonly ParsedCall[]
}

/** Collects text and calls. */
export class CallCollector implements CallSink {
  readonly #texts: string[] = []
  readonly calls: { name: string; arguments: string; isComplete: boolean }[] = []

  get joinedText(): string {
    return this.#texts.join('')
  }

  text(delta: string): void {
    this.#texts.push(delta)
  }

  callStarted(_index: number, name: string): void {
    this.calls.push({ name, arguments: '', isComplete: false })
  }

  callArguments(index: number, delta: string): void {
    this.calls[index].arguments += delta
  }

  callDone(index: number, isComplete: boolean): void {
    this.calls[index].isComplete = isComplete
  }
}

/** Never throws; an incomplete call is returned as text. */
export function parseToolCalls(
  format: ToolFormat,
  text: string,
  options: Omit<CallOptions, 'keepsCutCalls'>,
): ParsedCalls {
  const collector = new CallCollector()
  const reader = format.open(new CallOutput(collector, format.text, { ...options, keepsCutCalls: true }))
  reader.push(text)
  reader.end()
  const calls = collector.calls
    .filter(({ isComplete }) => isComplete)
    .map(({ name, arguments: written }) => ({ name, arguments: written }))
  return { text: collector.joinedText, calls }
}

export interface ParsedReasoning {
  readonly reasoning: string
  readonly text: string
}

/** @param isInside whether the prompt ended inside reasoning; undefined: depends on the format */
export function parseReasoning(format: ReasoningFormat, text: string, isInside?: boolean): ParsedReasoning {
  const reasoning: string[] = []
  const answer: string[] = []
  const sink: ReasoningSink = {
    reasoning: (part) => reasoning.push(part),
    text: (part) => answer.push(part),
    reasoningEnded: () => {},
    end: () => {},
  }
  const reader = format.open(sink, isInside)
  reader.push(text)
  reader.end()
  return { reasoning: reasoning.join(''), text: answer.join('') }
}
