/** Streams one JSON value as the arguments of a call whose name is known. @hot */
import { DONE, FAILED, JsonScanner, type JsonStyle, RUNNING } from '../scan/json-scanner.ts'
import type { CallOutput } from './call-output.ts'

export interface JsonArgumentsRules {
  readonly style: JsonStyle
  /** Treatment of a value that is not an object: kept, wrapped as `{"value":…}`, or rejected as no call. */
  readonly other: 'keep' | 'wrap' | 'refuse'
}

const OPEN_BRACE = 0x7b

export class JsonArguments {
  status = RUNNING
  readonly #scanner: JsonScanner
  readonly #rules: JsonArgumentsRules
  readonly #out: CallOutput
  #name = ''
  #isStarted = false

  constructor(out: CallOutput, rules: JsonArgumentsRules) {
    this.#out = out
    this.#rules = rules
    this.#scanner = new JsonScanner(rules.style, out.options.limits.maxArgumentChars)
  }

  reset(name: string): void {
    this.#name = name
    this.#isStarted = false
    this.status = RUNNING
    this.#scanner.reset(this.#rules.style, this.#out.options.limits.maxArgumentChars)
  }

  /** @returns the end of the value's text */
  feed(text: string, at: number): number {
    const stop = this.#scanner.feed(text, at, text.length)
    this.#settle()
    return stop
  }

  finish(): void {
    this.#scanner.finish()
    this.#settle()
  }

  /** Reports the name once the text is certain to be a value, unlike `{bad`. */
  #settle(): void {
    const { status, firstCode, hasEntry } = this.#scanner
    this.status = status
    const isObject = firstCode === OPEN_BRACE
    if (firstCode !== 0 && !isObject && this.#rules.other !== 'keep') {
      if (this.#rules.other === 'refuse') this.status = FAILED
      else if (status === DONE) this.#wrap()
      return
    }
    if (!this.#isStarted) {
      if (status !== DONE && !(isObject && hasEntry)) return
      if (!this.#out.start(this.#name)) {
        this.status = FAILED
        return
      }
      this.#isStarted = true
    }
    this.#out.arguments(this.#scanner.take())
  }

  #wrap(): void {
    if (this.#out.start(this.#name)) this.#out.arguments(`{"value":${this.#scanner.take()}}`)
    else this.status = FAILED
  }
}
