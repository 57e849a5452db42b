/** Reads the calls of a whole text, as the parse route and replies that are not streamed want them. */
import { type CallOptions, CallOutput, type CallSink } from './calls/call-output.ts'
import type { ToolFormat } from './formats/tool-format.ts'

/** A call with its arguments as JSON text. */
export interface ParsedCall {
  readonly name: string
  readonly arguments: string
}

export interface ParsedCalls {
  readonly text: string
  readonly calls: readonly ParsedCall[]
}

/** Gathers what a reader finds. */
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

/** Never throws; a call that is not whole is text. */
export function parseToolCalls(
  format: ToolFormat,
  text: string,
  options: Omit<CallOptions, 'holdCalls'>,
): ParsedCalls {
  const collector = new CallCollector()
  const reader = format.open(new CallOutput(collector, format.text, { ...options, holdCalls: true }))
  reader.push(text)
  reader.end()
  const calls = collector.calls.map(({ name, arguments: written }) => ({ name, arguments: written }))
  return { text: collector.joinedText, calls }
}
