/**
 * The choice of an engine that was told to reason before it keeps to JSON. Whether it does so depends on how it was
 * started, which it need not tell: an answer that begins as JSON has no reasoning in front of it.
 */
import type { OutputStream } from '#kernel'

const JSON_START = /^\s*(?:\{\s*["}]|\[\s*["{[\]])/
const UNDECIDED = /^\s*[{[]?\s*$/
/** Space that is held back at most. */
const MAX_HELD = 64

export class LateStream implements OutputStream {
  readonly separatesReasoning = true
  readonly #open: (isJson: boolean) => OutputStream
  #held = ''
  #stream: OutputStream | null = null

  /** @param open makes the stream that reads, once it is known how the answer begins */
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
