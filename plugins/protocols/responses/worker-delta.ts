/**
 * Deltas as a worker wrote them: most deltas of one part differ in their number and their text alone. The first one is read
 * as JSON, the following ones are compared with it, and clients get the worker's text with the gateway's number, id and
 * places in it. @hot
 */
import type { JsonObject, NativeDelta } from '#kernel'

/** A member of an object without nested values, up to the first quote of a text. */
const MEMBER = /\s*"(\w+)"\s*:\s*("|-?\d+|true|false|null|\[\s*\])/y
const END_OF_MEMBER = /\s*[,}]/y

/** What differs between the deltas of one part. */
const SLOTS: ReadonlySet<string> = new Set(['sequence_number', 'delta', 'obfuscation'])

/** Id and places of an item and its part, by the name of the member. */
export type Places = Readonly<Record<string, string | number>>

interface Member {
  readonly name: string
  /** Of the value, without quotes if it is one of `SLOTS` and a text. */
  readonly start: number
  readonly end: number
}

/** The text around the slots: one more than there are slots. */
export interface DeltaFrame {
  readonly texts: readonly string[]
  readonly slots: readonly string[]
}

/** A delta whose text equals that of the event that has it; an event with another text was edited. */
export class WorkerDelta implements NativeDelta {
  readonly form: DeltaForm
  readonly delta: string
  /** The JSON text of the delta, without quotes. */
  readonly #text: string
  readonly #obfuscation: string

  constructor(form: DeltaForm, delta: string, text: string, obfuscation: string) {
    this.form = form
    this.delta = delta
    this.#text = text
    this.#obfuscation = obfuscation
  }

  /** @param frame of its form */
  write({ texts, slots }: DeltaFrame, number: number): string {
    let written = texts[0]
    for (let at = 0; at < slots.length; at++) {
      const slot = slots[at]
      const value = slot === 'delta' ? this.#text : slot === 'obfuscation' ? this.#obfuscation : number
      written += value + texts[at + 1]
    }
    return written
  }
}

/** The common form of the deltas of one part. */
export class DeltaForm {
  /** The event that it was made from. */
  readonly event: JsonObject
  readonly #data: string
  readonly #members: readonly Member[]
  readonly #texts: readonly string[]
  readonly #slots: readonly string[]

  private constructor(event: JsonObject, data: string, members: readonly Member[]) {
    this.event = event
    this.#data = data
    this.#members = members
    this.#slots = members.map(({ name }) => name).filter((name) => SLOTS.has(name))
    this.#texts = this.#textsAround(null)
  }

  /**
   * @param data JSON text of the event
   * @returns null if it has nested values, such as log probabilities, or lacks a member that clients rely on
   */
  static of(event: JsonObject, data: string): DeltaForm | null {
    const { type, output_index: place, sequence_number: number, delta, obfuscation = '', logprobs } = event
    const hasTexts = typeof delta === 'string' && typeof obfuscation === 'string'
    if (!hasTexts || typeof place !== 'number' || typeof number !== 'number') return null
    if (type === TEXT && !Array.isArray(logprobs)) return null
    const members = membersIn(data)
    if (members === null) return null
    return new DeltaForm(event, data, members)
  }

  /** @returns null if the event differs from this form in more than the slots */
  read(data: string): WorkerDelta | null {
    const texts = this.#texts
    const slots = this.#slots
    let at = 0
    let delta = ''
    let obfuscation = ''
    for (let index = 0; index < slots.length; index++) {
      const start = at + texts[index].length
      // Faster than `startsWith`. bench: responses-proxy-sse
      if (data.slice(at, start) !== texts[index]) return null
      at = slots[index] === 'sequence_number' ? endOfNumber(data, start) : endOfText(data, start)
      if (at < 0) return null
      if (slots[index] === 'delta') delta = data.slice(start, at)
      else if (slots[index] === 'obfuscation') obfuscation = data.slice(start, at)
    }
    const last = texts[slots.length]
    if (data.slice(at) !== last || delta === '' || obfuscation.includes('\\')) return null
    return new WorkerDelta(this, delta.includes('\\') ? unescaped(delta) : delta, delta, obfuscation)
  }

  /** @param places of the gateway. @returns null if the event lacks one of them */
  frame(places: Places): DeltaFrame | null {
    const names = new Set(this.#members.map(({ name }) => name))
    if (!Object.keys(places).every((name) => names.has(name))) return null
    const texts = this.#textsAround(places)
    texts[0] = `event: ${String(this.event.type)}\ndata: ${texts[0]}`
    texts[texts.length - 1] += '\n\n'
    return { texts, slots: this.#slots }
  }

  /** @param places null for those of the worker */
  #textsAround(places: Places | null): string[] {
    const texts: string[] = []
    let text = ''
    let from = 0
    for (const { name, start, end } of this.#members) {
      const place = places !== null && Object.hasOwn(places, name) ? places[name] : undefined
      if (SLOTS.has(name)) {
        texts.push(text + this.#data.slice(from, start))
        text = ''
        from = end
      } else if (place !== undefined) {
        text += this.#data.slice(from, start) + JSON.stringify(place)
        from = end
      }
    }
    return [...texts, text + this.#data.slice(from)]
  }
}

const TEXT = 'response.output_text.delta'
const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
const ZERO = 0x30
const NINE = 0x39

/** @param data a JSON object. @returns null if it has nested values, or a name twice */
function membersIn(data: string): Member[] | null {
  const members: Member[] = []
  const names = new Set<string>()
  for (let at = data.indexOf('{') + 1; at < data.length; at = END_OF_MEMBER.lastIndex) {
    MEMBER.lastIndex = at
    const match = MEMBER.exec(data)
    if (match === null) return null
    const [, name, value] = match
    const isText = value === '"'
    const end = isText ? endOfText(data, MEMBER.lastIndex) : MEMBER.lastIndex
    const inset = isText && !SLOTS.has(name) ? 1 : 0
    members.push({ name, start: MEMBER.lastIndex - (isText ? 0 : value.length) - inset, end: end + inset })
    names.add(name)
    END_OF_MEMBER.lastIndex = isText ? end + 1 : end
    if (!END_OF_MEMBER.test(data)) return null
  }
  return names.size === members.length ? members : null
}

/** @returns -1 without a digit, and for a number that JSON does not have */
function endOfNumber(data: string, start: number): number {
  let at = start
  while (data.charCodeAt(at) >= ZERO && data.charCodeAt(at) <= NINE) at++
  const isNumber = at === start + 1 || (at > start && data.charCodeAt(start) !== ZERO)
  return isNumber ? at : -1
}

/** @returns position of the closing quote; -1 without one, and for control characters, which JSON forbids */
function endOfText(data: string, start: number): number {
  for (let at = start; at < data.length; at++) {
    const code = data.charCodeAt(at)
    if (code === QUOTE) return at
    if (code < SPACE) return -1
    if (code === BACKSLASH) at++
  }
  return -1
}

/** @throws SyntaxError for escapes that JSON does not have */
function unescaped(text: string): string {
  return JSON.parse(`"${text}"`) as string
}
