/** Streams one JSON value as the arguments of a call whose name is known. @hot */
import { DONE, FAILED, JsonScanner, type JsonStyle, RUNNING } from '../scan/json-scanner.ts'
import type { CallOutput } from './call-output.ts'
import { CallReader } from './call-reader.ts'
import type { BodyReader } from './headed-calls-reader.ts'

export interface JsonArgumentsRules {
  readonly style: JsonStyle
  /** Treatment of a value that is not an object: kept, wrapped as `{"value":…}`, or rejected as no call. */
  readonly other: 'keep' | 'wrap' | 'refuse'
}

const OPEN_BRACE = 0x7b

export class JsonArguments implements BodyReader {
  status = RUNNING
  readonly #scanner: JsonScanner
  readonly #rules: JsonArgumentsRules
  readonly #out: CallOutput
  readonly #tool: string
  #isStarted = false

  constructor(out: CallOutput, tool: string, rules: JsonArgumentsRules) {
    this.#out = out
    this.#tool = tool
    this.#rules = rules
    this.#scanner = new JsonScanner(rules.style, out.options.limits.maxArgumentChars)
  }

  feed(text: string, from: number, isEnd: boolean): number {
    const stop = this.#scanner.feed(text, from, text.length)
    if (isEnd) this.#scanner.finish()
    this.#settle()
    return stop
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
      if (!this.#out.start(this.#tool)) {
        this.status = FAILED
        return
      }
      this.#isStarted = true
    }
    this.#out.arguments(this.#scanner.take())
  }

  #wrap(): void {
    if (this.#out.start(this.#tool)) this.#out.arguments(`{"value":${this.#scanner.take()}}`)
    else this.status = FAILED
  }
}

/** Reads output that a schema restricts to the arguments of one named call. */
export class ForcedCallReader extends CallReader {
  readonly #json: JsonArguments

  constructor(out: CallOutput, name: string) {
    super(out)
    this.#json = new JsonArguments(out, name, { style: 'compact', other: 'keep' })
    out.begin()
  }

  protected override readText(): boolean {
    this.consume(this.#json.feed(this.input, this.at, this.isEnd) - this.at)
    if (this.#json.status === RUNNING) return false
    if (this.#json.status === DONE) {
      this.out.done()
      this.out.close()
    } else this.out.fail()
    return this.enter(this.#readRest)
  }

  #readRest(): boolean {
    this.textUntil(this.input.length)
    return false
  }
}
