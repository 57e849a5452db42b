/**
 * The text view of prompts: finds the texts in a request to a model, passes them through the `onPromptText` hooks and puts back
 * what they return. No list says where texts are: every string of the request is one unless it has the form of something else,
 * so that texts in members and items of unknown kinds are seen too.
 */
import type { PromptText } from '../contracts/generation/prompt-text.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import { BACKSLASH, QUOTE } from '../wire/json-bytes.ts'

/** Members that hold names, settings and opaque data, as long as their value has no white space. */
const STRUCTURAL = new Set(
  'type role id model object status url uri signature encrypted_content format pattern detail effort encoding required user uuid rid'.split(
    ' ',
  ),
)
const STRUCTURAL_END = /_(?:id|ids|url|uri|data|type|key|tier|effort|signature|identifier)$/
/** Its members are the model's and the user's: their names mean nothing. */
const DATA = new Set(['input', 'arguments', 'args', 'output', 'result', 'response', 'structuredContent'])
const WHITE_SPACE = /\s/
/** Shorter runs of such characters may be words. */
const MAX_WORD = 1_024
const BASE64 = /^[\w+/=-]*$/
const DATA_URL = /^data:[^,]{0,256};base64,/i
const RESULT_TYPE = /(?:_output|_result)$/
const TURN_TYPE = /(?:_call|_use|thinking|reasoning)$/

type JsonObject = Readonly<Record<string, unknown>>
type Visit = (text: string, role: string | null, place: string) => string

interface Surroundings {
  readonly role: string | null
  readonly place: string
  readonly isData: boolean
}

/** Copies a value with other texts. @returns the value itself if no text differs */
function mapTexts(value: unknown, around: Surroundings, visit: Visit): unknown {
  if (typeof value === 'string') return value === '' ? value : visit(value, around.role, around.place)
  if (Array.isArray(value)) return mapList(value, around, visit, (text) => text !== '')
  return isPlain(value) ? mapObject(value, around, visit) : value
}

function mapList(
  list: readonly unknown[],
  around: Surroundings,
  visit: Visit,
  isText: (text: string) => boolean,
): readonly unknown[] {
  let copy: unknown[] | null = null
  for (let index = 0; index < list.length; index++) {
    const value = list[index]
    if (typeof value === 'string' ? !isText(value) : typeof value !== 'object') continue
    const mapped = mapTexts(value, { ...around, place: join(around.place, String(index)) }, visit)
    if (mapped === value) continue
    copy ??= [...list]
    copy[index] = mapped
  }
  return copy ?? list
}

function mapObject(object: JsonObject, around: Surroundings, visit: Visit): JsonObject {
  const role = around.isData ? around.role : (roleOf(object) ?? around.role)
  let isChanged = false
  const members = Object.entries(object).map(([name, value]): [string, unknown] => {
    const isData = around.isData || (DATA.has(name) && isPlain(value))
    const isText = (text: string) => isData || isTextOf(object, name, text)
    if (typeof value === 'string' && (value === '' || !isText(value))) return [name, value]
    const inner = {
      role: (isData ? null : impliedRole(name)) ?? role,
      place: join(around.place, name),
      isData,
    }
    const mapped = Array.isArray(value)
      ? mapList(value, inner, visit, (text) => text !== '' && isText(text))
      : mapTexts(value, inner, visit)
    isChanged ||= mapped !== value
    return [name, mapped]
  })
  return isChanged ? Object.fromEntries(members) : object
}

function isTextOf(owner: JsonObject, name: string, text: string): boolean {
  if (DATA_URL.test(text)) return false
  if (WHITE_SPACE.test(text)) return true
  if (text.length > MAX_WORD && BASE64.test(text)) return false
  // A participant of a chat; elsewhere the name of a function or a schema.
  if (name === 'name') return typeof owner.role === 'string'
  // Of a document: its text, or a file.
  if (name === 'data') return owner.type === 'text'
  return !STRUCTURAL.has(name) && !STRUCTURAL_END.test(name)
}

function roleOf({ role, type }: JsonObject): string | null {
  if (typeof role === 'string') return role
  if (typeof type !== 'string') return null
  if (RESULT_TYPE.test(type)) return 'tool'
  return TURN_TYPE.test(type) ? 'assistant' : null
}

function impliedRole(name: string): string | null {
  return name === 'system' || name === 'instructions' ? 'system' : null
}

function join(place: string, name: string): string {
  return place === '' ? name : `${place}.${name}`
}

function isPlain(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/** @throws TypeError unless there is one string for each text */
export function withEdits(texts: readonly PromptText[], edited: readonly string[]): readonly PromptText[] {
  if (edited.length !== texts.length || !edited.every((text) => typeof text === 'string'))
    throw new TypeError(`an onPromptText hook must return ${texts.length} strings (got ${edited.length})`)
  return texts.map((one, index) => (one.text === edited[index] ? one : { ...one, text: edited[index] }))
}

/** The texts of a request, each text of a role once, and the request with others in their place. */
class PromptView {
  readonly texts: PromptText[] = []
  /** Indices of the texts by role; a key of both would be another copy of each text. */
  readonly #indices = new Map<string | null, Map<string, number>>()

  constructor(value: unknown) {
    mapTexts(value, TOP, (text, role, place) => {
      let ofRole = this.#indices.get(role)
      if (ofRole === undefined) {
        ofRole = new Map()
        this.#indices.set(role, ofRole)
      }
      if (!ofRole.has(text)) {
        ofRole.set(text, this.texts.length)
        this.texts.push({ role, place, text })
      }
      return text
    })
  }

  /** @param value the same texts as that of the constructor */
  put<T>(edited: readonly PromptText[], value: T): T {
    return mapTexts(value, TOP, (text, role) => {
      const index = this.#indices.get(role)?.get(text)
      return index === undefined ? text : edited[index].text
    }) as T
  }
}

const TOP: Surroundings = { role: null, place: '', isData: false }

/**
 * Passes the texts of a request through the hooks of its route.
 *
 * @param value plain JSON, in the form that the model gets; other objects within it are left as they are
 * @returns the value itself if no text changes; a promise only if a hook returns one
 * @throws what a hook throws, to refuse the request
 */
export function editTexts<T>(ctx: RelayContext, value: T): T | Promise<T> {
  return edit(ctx, value, () => value)
}

function edit<T>(ctx: RelayContext, value: T, exact: () => T): T | Promise<T> {
  const { onPromptText } = ctx.hooks
  if (onPromptText === null) return value
  const view = new PromptView(value)
  if (view.texts.length === 0) return value
  const put = (edited: readonly string[] | undefined | void): T => {
    const texts = edited ? withEdits(view.texts, edited) : view.texts
    return texts.every((one, index) => one === view.texts[index]) ? value : view.put(texts, exact())
  }
  const pending = onPromptText(ctx, view.texts)
  return pending instanceof Promise ? pending.then(put) : put(pending)
}

/**
 * Edits the client's body, for requests that pass it on. All other bytes stay the same unless a text changes.
 *
 * @returns null if the body is ready
 * @throws json_parse_error (400), and what a hook throws
 */
export function editBody(ctx: RelayContext): Promise<void> | null {
  if (ctx.hooks.onPromptText === null || ctx.rawBody.length === 0) return null
  const value = ctx.bodyJson()
  const put = (edited: unknown): void => {
    // Of two members with one name, the parser sees the last only; a worker may read the other.
    if (edited !== value || countStrings(value) !== countStringBytes(ctx.rawBody))
      ctx.setBody(Buffer.from(JSON.stringify(edited)))
  }
  const edited = edit(ctx, value, () => (hasExactNumbers(ctx.rawBody) ? parseExactly(ctx.rawBody) : value))
  if (edited instanceof Promise) return edited.then(put)
  put(edited)
  return null
}

declare global {
  interface JSON {
    /** @source ECMAScript proposal JSON.parse source text access */
    rawJSON(text: string): unknown
  }
}

/** A fraction, an exponent, many digits, or a negative zero; also within strings. */
const EXACT_NUMBER = /\d\.\d|\d[eE]|\d{16}|-0/

/** Parsing may change a number, and to keep it takes several times as long. */
function hasExactNumbers(body: Buffer): boolean {
  return EXACT_NUMBER.test(body.toString('latin1'))
}

/** Keeps numbers as they are written: 1.0 must not become 1, and no digit of a large integer may be lost. */
function parseExactly(body: Buffer): unknown {
  type Reviver = (name: string, value: unknown, context?: { source?: string }) => unknown
  const keepNumber: Reviver = (_, value, context) =>
    typeof value === 'number' && context?.source !== undefined && context.source !== String(value)
      ? JSON.rawJSON(context.source)
      : value
  return JSON.parse(body.toString('utf8'), keepNumber)
}

/** Strings of a parsed value, names of members included. */
function countStrings(value: unknown): number {
  if (typeof value === 'string') return 1
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + countStrings(one), 0)
  return Object.values(value).reduce((sum: number, one) => sum + 1 + countStrings(one), 0)
}

function countStringBytes(json: Buffer): number {
  let quotes = 0
  for (let at = 0; at < json.length; at++) {
    if (json[at] === BACKSLASH) at++
    else if (json[at] === QUOTE) quotes++
  }
  return quotes / 2
}
