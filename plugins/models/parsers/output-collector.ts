/** Gathers the output of a choice that is wanted as a whole. */
import type { OutputSink, ParsedOutput } from '#kernel'

interface Call {
  readonly id: string
  readonly name: string
  arguments: string
  isComplete: boolean
}

export class OutputCollector implements OutputSink {
  readonly #reasoning: string[] = []
  readonly #text: string[] = []
  readonly #calls: Call[] = []

  reasoning(delta: string): void {
    this.#reasoning.push(delta)
  }

  text(delta: string): void {
    this.#text.push(delta)
  }

  toolCallStarted(_index: number, id: string, name: string): void {
    this.#calls.push({ id, name, arguments: '', isComplete: false })
  }

  toolCallArguments(index: number, delta: string): void {
    this.#calls[index].arguments += delta
  }

  toolCallDone(index: number, isComplete: boolean): void {
    this.#calls[index].isComplete = isComplete
  }

  /** Without calls that were cut off. */
  output(): ParsedOutput {
    return {
      reasoning: this.#reasoning.join(''),
      text: this.#text.join(''),
      toolCalls: this.#calls
        .filter(({ isComplete }) => isComplete)
        .map(({ id, name, arguments: written }) => ({ id, name, arguments: written })),
    }
  }
}
