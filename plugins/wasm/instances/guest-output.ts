/** Reads what a guest gave back: frames and their heads, checked member by member. Runs on pool threads. */
import {
  decodeOutput,
  EventBody,
  type HeaderPair,
  MAX_ENTRIES,
  type ModifyAction,
} from '../../../wasm-sdk/abi.ts'
import { applyEdits, EditList } from '../hooks/header-edits.ts'
import type { PhaseResult, StreamEvent } from '../threads/guest-task.ts'

/** Most text that a module may carry from one event of a stream to the next, bytes. */
const MAX_STATE_BYTES = 65_536
const MAX_SHOWN_CHARACTERS = 64
const LEAST_STATUS = 200
const GREATEST_STATUS = 599

/** What is no valid output; the message says what is wrong with it. */
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

const CONTINUE: PhaseOutput = Object.freeze({
  action: 'continue',
  status: null,
  edits: [],
  droppedHeaders: 0,
  body: null,
  fetch: null,
})

/** @param output null when the guest gave none: it continues @throws BadOutput @source wasm facts 16 */
export function readPhaseOutput(output: Uint8Array | null, isRequestPhase: boolean): PhaseOutput {
  if (output === null || output.length === 0) return CONTINUE
  const { head, body } = readFrame(output)
  if (head.action === 'continue') return CONTINUE
  if (head.action === 'reject') return readReject(head, body)
  if (head.action === 'fetch') return readFetch(head, body)
  if (head.action !== 'modify') throw new BadOutput(`the action ${shown(head.action)} is not known`)
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
  list.addReply(readPairs(head, 'headers'))
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

function readFetch(head: Record<string, unknown>, body: Uint8Array): PhaseOutput {
  const { url, method = 'GET', timeout_ms = null, state = '' } = head
  if (typeof url !== 'string' || url.length > MAX_URL_CHARACTERS)
    throw new BadOutput(`a fetch needs a url, of ${MAX_URL_CHARACTERS} characters at most`)
  if (typeof method !== 'string' || !METHOD.test(method))
    throw new BadOutput(`${shown(method)} is no method in upper case`)
  if (timeout_ms !== null && !(typeof timeout_ms === 'number' && timeout_ms >= 1))
    throw new BadOutput('timeout_ms is no number from 1 on')
  const list = new EditList(false)
  list.addReply(readPairs(head, 'headers'))
  const order = { url, method, timeoutMs: timeout_ms, state: readState(state) }
  const headers = applyEdits([], list.edits)
  const fetch = { ...order, headers, body: new Uint8Array(body) }
  return { ...CONTINUE, action: 'fetch', droppedHeaders: list.dropped, fetch }
}

function readState(state: unknown): string {
  if (typeof state !== 'string') throw new BadOutput('state is no string')
  if (Buffer.byteLength(state) > MAX_STATE_BYTES)
    throw new BadOutput(`state has more than ${MAX_STATE_BYTES} bytes`)
  return state
}

/** Of the text that the model reads in place of a result, bytes. */
const MAX_REFUSAL_BYTES = 65_536

/** The answer to the call of a tool. @throws BadOutput */
export function readToolOutput(output: Uint8Array | null): PhaseOutput {
  if (output === null || output.length === 0) return CONTINUE
  const { head, body } = readFrame(output)
  if (head.action === 'continue') return CONTINUE
  if (head.action === 'reject') {
    if (body.length > MAX_REFUSAL_BYTES)
      throw new BadOutput(`the text for the model has more than ${MAX_REFUSAL_BYTES} bytes`)
    return { ...CONTINUE, action: 'reject', body: new Uint8Array(body) }
  }
  if (head.action === 'fetch') return readFetch(head, body)
  if (head.action !== 'modify') throw new BadOutput(`the action ${shown(head.action)} is not known`)
  if (head.replaces_body !== true) return { ...CONTINUE, action: 'modify' }
  checkArguments(body)
  return { ...CONTINUE, action: 'modify', body: new Uint8Array(body) }
}

function checkArguments(body: Buffer): void {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    throw new BadOutput('the arguments are no JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadOutput('the arguments are no JSON object')
}

export interface StreamOutput {
  /** Null lets the event pass as it is. */
  readonly events: readonly StreamEvent[] | null
  /** Null keeps what there was. */
  readonly state: string | null
}

/** @throws BadOutput */
export function readStreamOutput(output: Uint8Array | null): StreamOutput {
  if (output === null || output.length === 0) return { events: null, state: null }
  const { head, body } = readFrame(output)
  const { events, state } = head
  if (head.action === 'fetch') throw new BadOutput('a stream waits for no fetch')
  const kept = state === undefined ? null : readState(state)
  return { events: events === undefined ? null : readEvents(events, body), state: kept }
}

function readEvents(events: unknown, body: Buffer): StreamEvent[] {
  if (!Array.isArray(events)) throw new BadOutput('events is no list')
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
    throw new BadOutput('data_bytes of an event is no part of the body')
  if (typeof text !== 'string') throw new BadOutput('an event has no data')
  if (name !== null && (typeof name !== 'string' || /[\r\n]/.test(name)))
    throw new BadOutput('the name of an event is no single line')
  return { name, data: text }
}

function checkLength(list: readonly unknown[], member: string): void {
  if (list.length > MAX_ENTRIES)
    throw new BadOutput(`${member} has ${list.length} entries; the limit is ${MAX_ENTRIES}`)
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, MAX_SHOWN_CHARACTERS)) : typeof value
}

/** @throws BadOutput */
export function readFrame(output: Uint8Array): { head: Record<string, unknown>; body: Buffer } {
  try {
    const { head, body } = decodeOutput(output)
    if (typeof head !== 'object' || head === null || Array.isArray(head))
      throw new BadOutput('the head of the output is no object')
    return { head: head as Record<string, unknown>, body }
  } catch (error) {
    if (error instanceof BadOutput) throw error
    throw new BadOutput(`the output is no frame: ${(error as Error).message}`)
  }
}

function readEdits(head: Record<string, unknown>): ModifyAction {
  const removed = head.headers_remove ?? []
  if (!Array.isArray(removed) || !removed.every((name) => typeof name === 'string'))
    throw new BadOutput('headers_remove is no list of names')
  checkLength(removed, 'headers_remove')
  return {
    action: 'modify',
    headers_set: readPairs(head, 'headers_set'),
    headers_add: readPairs(head, 'headers_add'),
    headers_remove: removed,
  }
}

function readPairs(head: Record<string, unknown>, member: string): readonly HeaderPair[] {
  const pairs = head[member] ?? []
  const isPair = (pair: unknown) =>
    Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === 'string')
  if (!Array.isArray(pairs) || !pairs.every(isPair))
    throw new BadOutput(`${member} is no list of [name, value]`)
  checkLength(pairs, member)
  return pairs as HeaderPair[]
}

/** Interim and made-up statuses cannot end an exchange. */
function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= LEAST_STATUS && Number(value) <= GREATEST_STATUS
}
