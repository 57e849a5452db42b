/** Streams one JSON value as the arguments of a call whose name is known already. @hot */
import { DONE, FAILED, JsonScanner, type JsonStyle, RUNNING } from '../scan/json-scanner.ts'
import type { CallOutput } from './call-output.ts'

export interface JsonArgumentsRules {
  readonly style: JsonStyle
  /** What a value that is no object becomes: the arguments as they are, wrapped as `{"value":…}`, or no call. */
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

  /** @returns the place up to which the text belongs to the value */
  feed(text: string, at: number): number {
    const stop = this.#scanner.feed(text, at, text.length)
    this.#settle()
    return stop
  }

  finish(): void {
    this.#scanner.finish()
    this.#settle()
  }

  /** The name goes out when the value has shown that it is one: `{bad` never does. */
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
