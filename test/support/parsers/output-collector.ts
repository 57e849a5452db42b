/** Collects the output of a parser's stream. */
import type { OutputParser, OutputSink } from '#kernel'

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

  /** The output without incomplete calls. */
  output() {
    return {
      reasoning: this.#reasoning.join(''),
      text: this.#text.join(''),
      toolCalls: this.#calls
        .filter(({ isComplete }) => isComplete)
        .map(({ id, name, arguments: written }) => ({ id, name, arguments: written })),
    }
  }
}

/** Parses a complete output in one piece. */
export function parseWhole(parser: OutputParser, text: string) {
  const collector = new OutputCollector()
  const stream = parser.open(collector)
  stream.push(text)
  stream.end()
  return collector.output()
}
