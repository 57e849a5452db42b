/** Reads one call that is written as a JSON object, its name under one key and its arguments under another. @hot */
import { DONE, FAILED, isSpace, JsonScanner, RUNNING } from '../scan/json-scanner.ts'
import { type CallOutput, MAX_NAME_LENGTH } from './call-output.ts'

export interface JsonCallRules {
  /** Usual key first; a name under another key counts only once the object is complete. */
  readonly nameKeys: readonly string[]
  readonly argumentKeys: readonly string[]
  /** The first key must be one of these or of the two lists: for formats in which JSON in an answer need not be a call. */
  readonly firstKeys?: readonly string[]
  /** Arguments are required and must be an object. */
  readonly isStrict?: boolean
}

const MAX_KEY = 1_024

const OPEN = 0
const KEY_OR_CLOSE = 1
const KEY = 2
const COLON = 3
const VALUE_START = 4
const VALUE = 5
const COMMA_OR_CLOSE = 6

const OTHER = 0
const NAME = 1
const ARGUMENTS = 2

export class JsonCall {
  status = RUNNING
  readonly #out: CallOutput
  readonly #rules: JsonCallRules
  readonly #key: JsonScanner
  readonly #value: JsonScanner
  #state = OPEN
  #kind = OTHER
  #isFirstKey = true
  #name = ''
  /** Index of the name's key in the list; the length of the list while there is no name. */
  #rank = 0
  #hasArguments = false
  #isStarted = false
  /** Arguments before the name is known. */
  #waiting = ''
  #left = 0

  constructor(out: CallOutput, rules: JsonCallRules) {
    this.#out = out
    this.#rules = rules
    this.#key = new JsonScanner('compact', MAX_KEY)
    this.#value = new JsonScanner('compact', MAX_KEY)
  }

  /** @param maxHeld maximum characters before the call is certain */
  reset(maxHeld: number): void {
    this.status = RUNNING
    this.#state = OPEN
    this.#isFirstKey = true
    this.#name = ''
    this.#rank = this.#rules.nameKeys.length
    this.#hasArguments = false
    this.#isStarted = false
    this.#waiting = ''
    this.#left = maxHeld
  }

  /** @returns the end of the object's text */
  feed(text: string, from: number): number {
    let at = from
    while (this.status === RUNNING && at < text.length) {
      const end = this.#isStarted || text.length - at <= this.#left ? text.length : at + this.#left
      if (end === at) {
        this.status = FAILED
        break
      }
      const before = at
      at = this.#read(text, at, end)
      if (!this.#isStarted) this.#left -= at - before
    }
    return at
  }

  #read(text: string, from: number, end: number): number {
    if (this.#state === KEY) return this.#readKey(text, from, end)
    if (this.#state === VALUE) return this.#readValue(text, from, end)
    let at = from
    while (at < end && isSpace(text.charCodeAt(at))) at++
    if (at === end) return at
    const code = text.charCodeAt(at)
    if (this.#state === KEY_OR_CLOSE && code === 0x22) {
      this.#key.reset('compact', MAX_KEY)
      this.#state = KEY
      return at
    }
    if (this.#state === VALUE_START) {
      this.#startValue()
      this.#state = VALUE
      return at
    }
    if (!this.#punctuation(code)) {
      this.status = FAILED
      return at
    }
    return at + 1
  }

  #punctuation(code: number): boolean {
    switch (this.#state) {
      case OPEN:
        this.#state = KEY_OR_CLOSE
        return code === 0x7b
      case COLON:
        this.#state = VALUE_START
        return code === 0x3a
      case COMMA_OR_CLOSE:
        if (code === 0x2c) {
          this.#state = KEY_OR_CLOSE
          return true
        }
        return code === 0x7d && this.#ends()
      default:
        // An object without keys is not a call.
        return false
    }
  }

  #readKey(text: string, from: number, end: number): number {
    const at = this.#key.feed(text, from, end)
    if (this.#key.status === FAILED) this.status = FAILED
    if (this.#key.status !== DONE) return at
    const key = JSON.parse(this.#key.take()) as string
    const { nameKeys, argumentKeys, firstKeys } = this.#rules
    const rank = nameKeys.indexOf(key)
    this.#kind = OTHER
    if (rank >= 0 && rank < this.#rank) {
      this.#kind = NAME
      this.#rank = rank
    } else if (argumentKeys.includes(key) && !this.#hasArguments) this.#kind = ARGUMENTS
    const isKnown = rank >= 0 || argumentKeys.includes(key)
    if (this.#isFirstKey && !isKnown && firstKeys !== undefined && !firstKeys.includes(key))
      this.status = FAILED
    this.#isFirstKey = false
    this.#state = COLON
    return at
  }

  #startValue(): void {
    if (this.#kind === NAME) this.#value.reset('compact', 6 * MAX_NAME_LENGTH)
    else this.#value.reset('compact', this.#out.options.limits.maxArgumentChars)
  }

  #readValue(text: string, from: number, end: number): number {
    const scanner = this.#value
    const at = scanner.feed(text, from, end)
    if (this.#kind === OTHER) scanner.take()
    else if (this.#kind === ARGUMENTS && !this.#streams()) this.status = FAILED
    if (scanner.status === FAILED) this.status = FAILED
    if (scanner.status !== DONE || this.status === FAILED) return at
    if (this.#kind === NAME) {
      const literal = scanner.take()
      if (literal[0] !== '"') {
        this.status = FAILED
        return at
      }
      this.#name = JSON.parse(literal) as string
    } else if (this.#kind === ARGUMENTS) this.#hasArguments = true
    this.#state = COMMA_OR_CLOSE
    return at
  }

  /** Passes on arguments once they have a first member and the name is certain. */
  #streams(): boolean {
    const { firstCode, hasEntry, status } = this.#value
    if (this.#rules.isStrict === true && firstCode !== 0x7b && firstCode !== 0) return false
    if (this.#isStarted) {
      this.#out.arguments(this.#value.take())
      return true
    }
    this.#waiting += this.#value.take()
    const isCertain = this.#rank === 0 && this.#name !== ''
    if (!isCertain || !(status === DONE || (firstCode === 0x7b && hasEntry))) return true
    return this.#start()
  }

  #start(): boolean {
    if (!this.#out.start(this.#name)) return false
    this.#isStarted = true
    this.#out.arguments(this.#waiting)
    this.#waiting = ''
    return true
  }

  #ends(): boolean {
    if (this.#name === '' || (this.#rules.isStrict === true && !this.#hasArguments)) return false
    if (!this.#isStarted) {
      if (!this.#hasArguments) this.#waiting = '{}'
      if (!this.#start()) return false
    }
    this.status = DONE
    return true
  }
}
