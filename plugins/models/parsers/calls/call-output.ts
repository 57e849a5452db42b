/**
 * Output of a reader of calls: text, and calls as soon as they are certain. Keeps
 * the raw text of undecided calls, and applies the rules for text beside calls. @hot
 */
import { isBlank, isSpace } from '../scan/json-scanner.ts'
import type { ToolTypes } from '../scan/tool-types.ts'

/** Receives text and calls, in order. */
export interface CallSink {
  text(delta: string): void
  /** @param index 0-based, without gaps */
  callStarted(index: number, name: string): void
  callArguments(index: number, delta: string): void
  /** @param isComplete false when the text ended or broke inside the call */
  callDone(index: number, isComplete: boolean): void
}

/** Rules for text outside calls. */
export interface TextRules {
  /** `prefix`: text after the first call is ignored; `verbatim`: it is part of the answer. */
  readonly trailing: 'prefix' | 'verbatim'
  /**
   * Space at the borders: `keep`; `before-calls`: dropped before a block; `blank-line`: exactly one empty line is dropped;
   * `trim`: removed at both ends of the text.
   */
  readonly space: 'keep' | 'before-calls' | 'blank-line' | 'trim'
}

export interface CallLimits {
  readonly maxCalls: number
  /** Characters of one call's arguments. */
  readonly maxArgumentChars: number
}

export interface CallOptions {
  readonly tools: ToolTypes
  readonly limits: CallLimits
  /** Reports an incomplete call as text too, for callers that know complete calls and text only. */
  readonly keepsCutCalls: boolean
  /** Drops text after the first call if the rule of the format is `prefix`. */
  readonly dropsTrailing: boolean
  /** A call of an undeclared tool: passed on, or treated as text. */
  readonly unknownTools: 'forward' | 'text'
}

export const MAX_NAME_LENGTH = 256
/** Maximum length of buffered space; longer space is text. */
const MAX_SPACE = 65_536

export class CallOutput {
  readonly options: CallOptions
  readonly #sink: CallSink
  readonly #rules: TextRules
  /** Consumed text that is returned as text if it does not become a call. */
  #raw = ''
  #isOpen = false
  #isInCall = false
  #count = 0
  #complete = 0
  #space = ''
  #hasText = false
  /** A call was passed on, and no text since. */
  #isBehindCall = false

  constructor(sink: CallSink, rules: TextRules, options: CallOptions) {
    this.#sink = sink
    this.#rules = rules
    this.options = options
  }

  /** Calls handed out. */
  get count(): number {
    return this.#count
  }

  /** A part that may become a call is open. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Consumed text that is not yet decided. */
  get rawText(): string {
    return this.#raw
  }

  text(part: string): void {
    if (part === '') return
    const rules = this.#rules
    const hasCall = (this.options.keepsCutCalls ? this.#complete : this.#count) > 0
    if (hasCall && rules.trailing === 'prefix') {
      if (this.options.dropsTrailing) return
      if (this.#isBehindCall) {
        this.#textBehindCall(part)
        return
      }
    }
    if (rules.space === 'keep') this.#send(part)
    else this.#holdSpace(part)
  }

  /** Space between and after calls is dropped with the calls. */
  #textBehindCall(part: string): void {
    this.#space += part
    if (isBlank(part) && this.#space.length < MAX_SPACE) return
    const all = this.#space
    this.#space = ''
    this.#isBehindCall = false
    this.#holdSpace(all)
  }

  #holdSpace(part: string): void {
    if (this.#rules.space === 'keep') {
      this.#send(part)
      return
    }
    let whole = this.#space === '' ? part : this.#space + part
    this.#space = ''
    if (this.#rules.space === 'trim' && !this.#hasText) {
      let start = 0
      while (start < whole.length && isSpace(whole.charCodeAt(start))) start++
      whole = whole.slice(start)
    }
    let end = whole.length
    while (end > 0 && isSpace(whole.charCodeAt(end - 1))) end--
    if (whole.length - end >= MAX_SPACE) end = whole.length
    this.#space = whole.slice(end)
    if (end > 0) this.#send(end === whole.length ? whole : whole.slice(0, end))
  }

  #send(part: string): void {
    this.#hasText = true
    this.#isBehindCall = false
    this.#sink.text(part)
  }

  /** Begins a part that may contain calls. */
  begin(): void {
    this.#isOpen = true
  }

  /** Text that was consumed inside the part. */
  raw(part: string): void {
    if (this.#isOpen && (this.options.keepsCutCalls || !this.#isInCall)) this.#raw += part
  }

  /** @returns false if it cannot be a call; the reader then calls `fail` */
  start(name: string): boolean {
    const { options } = this
    if (name === '' || name.length > MAX_NAME_LENGTH) return false
    if (this.#count >= options.limits.maxCalls) return false
    if (options.unknownTools === 'text' && options.tools.size > 0 && !options.tools.has(name)) return false
    this.#isInCall = true
    const dropped = this.#beforeCall()
    this.#raw = options.keepsCutCalls ? dropped + this.#raw : ''
    this.#isBehindCall = this.#rules.trailing === 'prefix'
    this.#sink.callStarted(this.#count++, name)
    return true
  }

  /** Appends text of the arguments. */
  arguments(part: string): void {
    if (part !== '') this.#sink.callArguments(this.#count - 1, part)
  }

  /** Completes the call. */
  done(): void {
    this.#isInCall = false
    this.#complete++
    this.#raw = ''
    this.#sink.callDone(this.#count - 1, true)
  }

  /** Ends the part that was begun. */
  close(): void {
    this.#isOpen = false
    this.#raw = ''
  }

  /** Returns the part as text because it contains no call; a call that was already reported stays incomplete. */
  fail(): void {
    const raw = this.#raw
    this.#raw = ''
    this.#isOpen = false
    if (this.#isInCall) this.#sink.callDone(this.#count - 1, false)
    if (this.options.keepsCutCalls && this.#complete === 0) this.#isBehindCall = false
    this.#isInCall = false
    this.text(raw)
  }

  /** Drops the part: it is neither call nor text. */
  discard(): void {
    this.#raw = ''
    this.fail()
  }

  /** The text is over. */
  end(): void {
    if (this.#isOpen) this.fail()
    const isDropped = this.#isBehindCall || this.#rules.space === 'trim'
    if (this.#space !== '' && !isDropped) this.#sink.text(this.#space)
    this.#space = ''
  }

  /** @returns space that is dropped */
  #beforeCall(): string {
    const space = this.#space
    const { space: rule } = this.#rules
    if (space === '' || (rule === 'trim' && !this.#isBehindCall)) return ''
    this.#space = ''
    if (this.#isBehindCall || rule !== 'blank-line') return space
    const kept = space.endsWith('\n\n') ? space.slice(0, -2) : space
    if (kept !== '') this.#sink.text(kept)
    return space.slice(kept.length)
  }
}
