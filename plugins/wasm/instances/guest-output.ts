/** Reads and checks the output of a module: the frame and each member of its head. Runs on pool threads. */
import {
  decodeOutput,
  EventBody,
  type HeaderPair,
  MAX_ENTRIES,
  type ModifyAction,
  type PickAction,
  type PromptTextEntry,
  type TextAction,
} from '../../../wasm-sdk/abi.ts'
import type { FetchOrder } from '../fetch/fetch-order.ts'
import { applyEdits, EditList } from '../hooks/header-edits.ts'
import type { PhaseResult, StreamEvent } from '../threads/guest-task.ts'

/** Largest state that a module may carry from one stream event to the next, bytes. */
const MAX_STATE_BYTES = 65_536
const MAX_SHOWN_CHARACTERS = 64
/** Bytes within a character of UTF-8. */
const CONTINUATION_MASK = 0xc0
const CONTINUATION = 0x80
const LEAST_STATUS = 200
const GREATEST_STATUS = 599
const LEAST_ERROR_STATUS = 400

/** Invalid output; the message names the member. */
export class BadOutput extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadOutput'
  }
}

export type PhaseOutput = Pick<
  PhaseResult,
  'action' | 'status' | 'edits' | 'droppedHeaders' | 'body' | 'fetch'
>

export const CONTINUE: PhaseOutput = Object.freeze({
  action: 'continue',
  status: null,
  edits: [],
  droppedHeaders: 0,
  body: null,
  fetch: null,
})

/** @param output null when the module returned none: it continues @throws BadOutput */
export function readPhaseOutput(output: Uint8Array | null, isRequestPhase: boolean): PhaseOutput {
  if (output === null || output.length === 0) return CONTINUE
  const { head, body } = readFrame(output)
  if (head.action === 'continue') return CONTINUE
  if (head.action === 'reject') return readReject(head, body)
  if (head.action === 'fetch') return readFetch(head, body)
  if (head.action !== 'modify') throw unknownAction(head.action)
  const list = new EditList(!isRequestPhase)
  list.addAll(readEdits(head))
  return {
    action: 'modify',
    status: !isRequestPhase && isStatus(head.status) ? head.status : null,
    edits: list.edits,
    droppedHeaders: list.dropped,
    body: head.replaces_body === true ? new Uint8Array(body) : null,
    fetch: null,
  }
}

function readReject(head: Record<string, unknown>, body: Uint8Array): PhaseOutput {
  const list = new EditList(true)
  list.addResponse(readPairs(head, 'headers'))
  return {
    action: 'reject',
    status: isStatus(head.status) ? head.status : 400,
    edits: list.edits,
    droppedHeaders: list.dropped,
    body: new Uint8Array(body),
    fetch: null,
  }
}

const MAX_URL_CHARACTERS = 8_192
const METHOD = /^[A-Z]{1,16}$/

interface FetchHead {
  readonly url: string
  readonly method: string
  readonly timeoutMs: number | null
  readonly state: string
}

/** @throws BadOutput */
export function readFetchHead(head: Record<string, unknown>): FetchHead {
  const { url, method = 'GET', timeout_ms = null, state = '' } = head
  if (typeof url !== 'string' || url.length > MAX_URL_CHARACTERS)
    throw new BadOutput(`url of a fetch must be a string of at most ${MAX_URL_CHARACTERS} characters`)
  if (typeof method !== 'string' || !METHOD.test(method))
    throw new BadOutput(`method of a fetch must be an upper-case HTTP method (got ${shown(method)})`)
  if (timeout_ms !== null && !(typeof timeout_ms === 'number' && timeout_ms >= 1))
    throw new BadOutput('timeout_ms of a fetch must be a number >= 1')
  return { url, method, timeoutMs: timeout_ms, state: readState(state) }
}

function readFetch(head: Record<string, unknown>, body: Uint8Array): PhaseOutput {
  const order = readFetchHead(head)
  const list = new EditList(false)
  list.addResponse(readPairs(head, 'headers'))
  const headers = applyEdits([], list.edits)
  const fetch = { ...order, headers, body: new Uint8Array(body) }
  return { ...CONTINUE, action: 'fetch', droppedHeaders: list.dropped, fetch }
}

/** Why a call fails that requests a further fetch. */
export function tooManyFetches(limit: number): string {
  return `more than ${limit} fetches in one phase (plugins.wasm.fetch.maxPerCall)`
}

function readState(state: unknown): string {
  if (typeof state !== 'string') throw new BadOutput('state must be a string')
  if (Buffer.byteLength(state) > MAX_STATE_BYTES)
    throw new BadOutput(`state has more than ${MAX_STATE_BYTES} bytes`)
  return state
}

/** Of the text that the model reads in place of a tool result, and of the message of a refused prompt. */
const MAX_REFUSAL_BYTES = 65_536

/** Output of OnToolCall. @throws BadOutput */
export function readToolOutput(output: Uint8Array | null): PhaseOutput {
  if (output === null || output.length === 0) return CONTINUE
  const { head, body } = readFrame(output)
  if (head.action === 'continue') return CONTINUE
  if (head.action === 'fetch') return readFetch(head, body)
  const { action, body: replaced } = readToolHead(head, body)
  return { ...CONTINUE, action, body: replaced && new Uint8Array(replaced) }
}

/** @returns the text for the model, or the new arguments; null keeps the arguments @throws BadOutput */
export function readToolHead(
  head: Record<string, unknown>,
  body: Buffer,
): { action: 'reject' | 'modify'; body: Buffer | null } {
  if (head.action === 'reject') {
    if (body.length > MAX_REFUSAL_BYTES)
      throw new BadOutput(`the text for the model has more than ${MAX_REFUSAL_BYTES} bytes`)
    return { action: 'reject', body }
  }
  if (head.action !== 'modify') throw unknownAction(head.action)
  if (head.replaces_body !== true) return { action: 'modify', body: null }
  checkArguments(body)
  return { action: 'modify', body }
}

function checkArguments(body: Buffer): void {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    throw new BadOutput('the arguments are not valid JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadOutput('the arguments must be a JSON object')
}

/**
 * Output of OnPromptText. The body of the result is the module's list.
 *
 * @param texts number of texts in the input
 * @throws BadOutput
 */
export function readPromptOutput(output: Uint8Array | null, texts: number): PhaseOutput {
  if (output === null || output.length === 0) return CONTINUE
  const { head, body } = readFrame(output)
  if (head.action === 'continue') return CONTINUE
  if (head.action === 'fetch') return readFetch(head, body)
  const { action, status, replaced } = readPromptHead(head, body, texts)
  return { ...CONTINUE, action, status, body: replaced || action === 'reject' ? new Uint8Array(body) : null }
}

export function toEntries(json: Uint8Array): readonly PromptTextEntry[] {
  return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8'))
}

/** @param texts number of texts in the input @returns the list; null keeps all @throws BadOutput */
export function readPromptHead(
  head: Record<string, unknown>,
  body: Buffer,
  texts: number,
): { action: 'reject' | 'modify'; status: number | null; replaced: readonly (string | null)[] | null } {
  if (head.action === 'reject') {
    if (body.length > MAX_REFUSAL_BYTES)
      throw new BadOutput(`the message of the error has more than ${MAX_REFUSAL_BYTES} bytes`)
    const status =
      isStatus(head.status) && head.status >= LEAST_ERROR_STATUS ? head.status : LEAST_ERROR_STATUS
    return { action: 'reject', status, replaced: null }
  }
  if (head.action !== 'modify') throw unknownAction(head.action)
  if (head.replaces_body !== true) return { action: 'modify', status: null, replaced: null }
  const replaced = parseList(body)
  if (replaced.length !== texts)
    throw new BadOutput(`the body must be a list of ${texts} texts (got ${replaced.length})`)
  const bad = replaced.findIndex((text) => text !== null && typeof text !== 'string')
  if (bad >= 0) throw new BadOutput(`text ${bad} of the body must be a string or null`)
  return { action: 'modify', status: null, replaced: replaced as readonly (string | null)[] }
}

function parseList(body: Buffer): readonly unknown[] {
  let list: unknown
  try {
    list = JSON.parse(body.toString('utf8'))
  } catch {
    throw new BadOutput('the body is not valid JSON')
  }
  if (!Array.isArray(list)) throw new BadOutput('the body must be a list of texts')
  return list
}

export interface StreamOutput {
  /** Null lets the event pass as it is. */
  readonly events: readonly StreamEvent[] | null
  /** Null keeps what there was. */
  readonly state: string | null
  /** Null if the module requests no fetch. */
  readonly fetch: FetchOrder | null
}

/** @throws BadOutput */
export function readStreamOutput(output: Uint8Array | null): StreamOutput {
  if (output === null || output.length === 0) return { events: null, state: null, fetch: null }
  const { head, body } = readFrame(output)
  if (head.action === 'fetch')
    return { events: null, state: keptState(head), fetch: readFetch(head, body).fetch }
  return { ...readStreamHead(head, body), fetch: null }
}

/** @throws BadOutput */
export function readStreamHead(
  head: Record<string, unknown>,
  body: Buffer,
): Pick<StreamOutput, 'events' | 'state'> {
  const { events } = head
  return { events: events === undefined ? null : readEvents(events, body), state: keptState(head) }
}

/** @returns null without a state @throws BadOutput */
export function keptState({ state }: Record<string, unknown>): string | null {
  return state === undefined ? null : readState(state)
}

export interface TextOutput {
  /** Text to pass on now; null passes on the whole text. */
  readonly text: string | null
  readonly held: string
  /** Null if the module requests no fetch. */
  readonly fetch: FetchOrder | null
}

const WHOLE_TEXT: TextOutput = Object.freeze({ text: null, held: '', fetch: null })

/** Output of OnText. @throws BadOutput */
export function readTextOutput(output: Uint8Array | null): TextOutput {
  if (output === null || output.length === 0) return WHOLE_TEXT
  const { head, body } = readFrame(output)
  if (head.action === 'fetch') return { ...WHOLE_TEXT, fetch: readFetch(head, body).fetch }
  return { ...readTextHead(head, body), fetch: null }
}

/** @throws BadOutput */
export function readTextHead(head: Record<string, unknown>, body: Buffer): Pick<TextOutput, 'text' | 'held'> {
  const { held_bytes: heldBytes = 0 } = head as TextAction
  if (heldBytes === 0) return { text: body.toString('utf8'), held: '' }
  const end = Number.isSafeInteger(heldBytes) ? body.length - heldBytes : -1
  if (end < 0 || end > body.length)
    throw new BadOutput('held_bytes must be the length of the end of the body')
  if (body.length - end > MAX_STATE_BYTES)
    throw new BadOutput(`the held-back text has more than ${MAX_STATE_BYTES} bytes`)
  if ((body[end] & CONTINUATION_MASK) === CONTINUATION)
    throw new BadOutput('held_bytes must begin with a whole character')
  return { text: body.toString('utf8', 0, end), held: body.toString('utf8', end) }
}

function readEvents(events: unknown, body: Buffer): StreamEvent[] {
  if (!Array.isArray(events)) throw new BadOutput('events must be a list')
  checkLength(events, 'events')
  const inBody = new EventBody(body)
  return events.map((event) => readEvent(event, inBody))
}

function readEvent(
  event: { name?: unknown; data?: unknown; data_bytes?: unknown } | null,
  inBody: EventBody,
): StreamEvent {
  const { name = null, data, data_bytes } = event ?? {}
  const text = data_bytes === undefined ? data : inBody.take(data_bytes)
  if (text === null && data_bytes !== undefined)
    throw new BadOutput('data_bytes of an event is outside of the body')
  if (typeof text !== 'string') throw new BadOutput('data of an event must be a string')
  if (name !== null && (typeof name !== 'string' || /[\r\n]/.test(name)))
    throw new BadOutput('name of an event must be a single line')
  return { name, data: text }
}

export function unknownAction(action: unknown): BadOutput {
  return new BadOutput(`action must be continue, reject, modify or fetch (got ${shown(action)})`)
}

function checkLength(list: readonly unknown[], member: string): void {
  if (list.length > MAX_ENTRIES)
    throw new BadOutput(`${member} has ${list.length} entries; the limit is ${MAX_ENTRIES}`)
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, MAX_SHOWN_CHARACTERS)) : typeof value
}

/** @throws BadOutput */
function readFrame(output: Uint8Array): { head: Record<string, unknown>; body: Buffer } {
  try {
    const { head, body } = decodeOutput(output)
    if (typeof head !== 'object' || head === null || Array.isArray(head))
      throw new BadOutput('the head of the output must be a JSON object')
    return { head: head as Record<string, unknown>, body }
  } catch (error) {
    if (error instanceof BadOutput) throw error
    throw new BadOutput(`the output is not a valid frame: ${(error as Error).message}`)
  }
}

/** @throws BadOutput */
export function readEdits(head: Record<string, unknown>): ModifyAction {
  const removed = head.headers_remove ?? []
  if (!Array.isArray(removed) || !removed.every((name) => typeof name === 'string'))
    throw new BadOutput('headers_remove must be a list of names')
  checkLength(removed, 'headers_remove')
  return {
    action: 'modify',
    headers_set: readPairs(head, 'headers_set'),
    headers_add: readPairs(head, 'headers_add'),
    headers_remove: removed,
  }
}

/** @throws BadOutput */
export function readPairs(head: Record<string, unknown>, member: string): readonly HeaderPair[] {
  const pairs = head[member] ?? []
  const isPair = (pair: unknown) =>
    Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === 'string')
  if (!Array.isArray(pairs) || !pairs.every(isPair))
    throw new BadOutput(`${member} must be a list of [name, value]`)
  checkLength(pairs, member)
  return pairs as HeaderPair[]
}

/** Interim and unregistered statuses cannot end an exchange. */
export function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= LEAST_STATUS && Number(value) <= GREATEST_STATUS
}

/** The module leaves the choice of a worker to the default policy. */
export const NO_CHOICE = -1

/**
 * Reads the output of OnPick.
 * @param shown number of candidates in the input
 * @returns index of a candidate, or NO_CHOICE
 * @throws BadOutput
 */
export function readChoice(output: Uint8Array | null, shown: number): number {
  if (output === null || output.length === 0) return NO_CHOICE
  return checkChoice((readFrame(output).head as PickAction).choice, shown)
}

/** @throws BadOutput */
export function checkChoice(choice: unknown, shown: number): number {
  if (choice === undefined || choice === null || choice === NO_CHOICE) return NO_CHOICE
  if (typeof choice !== 'number' || !Number.isInteger(choice) || choice < 0 || choice >= shown)
    throw new BadOutput(`choice must be null, -1 or the index of one of ${shown} candidates`)
  return choice
}
