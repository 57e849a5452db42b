/** Reads what a module answered as the gateway does, and says what of it the gateway would not do. */
import {
  type AttachPoint,
  EventBody,
  type GuestAction,
  type HeaderPair,
  MAX_ENTRIES,
  PROTECTED_HEADERS,
} from '../../../wasm-sdk/abi.ts'

/** An answer in the words of the ABI, with everything that was left out filled in. */
export interface GuestAnswer {
  readonly action: GuestAction['action']
  /** As the gateway takes it: null for none, 400 for a rejection whose status is none. */
  readonly status: number | null
  /** Of a rejection. */
  readonly headers: readonly HeaderPair[]
  readonly headers_set: readonly HeaderPair[]
  readonly headers_add: readonly HeaderPair[]
  readonly headers_remove: readonly string[]
  /** The body that replaces the one there was, or that of a rejection; null when it stays as it is. */
  readonly body: Buffer | null
  /** Stream phase: null when the event passes as it is. */
  readonly events: readonly OutgoingEvent[] | null
  /** Stream phase: null keeps what there was. */
  readonly state: string | null
  /** Pick phase: null leaves it to the default policy. */
  readonly choice: number | null
  /** What the module waits for. */
  readonly fetch: AskedFetch | null
  /** What the gateway leaves out, in words. */
  readonly ignored: readonly string[]
}

/** A fetch with everything that was left out filled in. */
export interface AskedFetch {
  readonly url: string
  readonly method: string
  readonly headers: readonly HeaderPair[]
  readonly body: Buffer
  readonly state: string
}

export interface OutgoingEvent {
  readonly name: string | null
  readonly data: string
}

export interface GuestOutput {
  readonly head: unknown
  readonly body: Buffer
}

const CONTINUE: GuestAnswer = Object.freeze({
  action: 'continue',
  status: null,
  headers: [],
  headers_set: [],
  headers_add: [],
  headers_remove: [],
  body: null,
  events: null,
  state: null,
  choice: null,
  fetch: null,
  ignored: [],
})

const MAX_STATE_BYTES = 65_536
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what a header must not hold
const UNSAFE_VALUE = /[\u0000-\u0008\u000a-\u001f\u007f]/

/**
 * @param output null when the module output nothing: it continues
 * @param candidates that it was shown, in the pick phase
 * @throws Error naming the member that is wrong; the gateway counts such a call as failed
 */
export function readAnswer(
  output: GuestOutput | null,
  point: AttachPoint,
  candidates = Number.POSITIVE_INFINITY,
): GuestAnswer {
  if (output === null) return CONTINUE
  const { head, body } = output
  if (typeof head !== 'object' || head === null || Array.isArray(head)) {
    throw new Error('the head of the output is no object')
  }
  const members = head as Record<string, unknown>
  if (point === 'OnStreamEvent') return readStreamAnswer(members, body)
  if (point === 'OnPick') return readPickAnswer(members, candidates)
  if (members.action === 'continue') return CONTINUE
  if (members.action === 'fetch') return readFetch(members, body)
  if (point === 'OnToolCall') return readToolAnswer(members, body)
  if (members.action === 'reject') return readReject(members, body)
  if (members.action === 'modify') return readModify(members, body, point)
  throw new Error(
    `the action ${JSON.stringify(members.action)} is neither continue, reject, modify nor fetch`,
  )
}

function readReject(head: Record<string, unknown>, body: Buffer): GuestAnswer {
  const ignored: string[] = []
  if (!isStatus(head.status)) ignored.push(`${head.status} is no status: the reply has 400`)
  const headers = allowed(readPairs(head, 'headers'), ignored)
  return {
    ...CONTINUE,
    action: 'reject',
    status: isStatus(head.status) ? head.status : 400,
    headers,
    body,
    ignored,
  }
}

function readPickAnswer({ choice = null }: Record<string, unknown>, candidates: number): GuestAnswer {
  if (choice === null || choice === -1) return CONTINUE
  if (typeof choice !== 'number' || !Number.isInteger(choice) || choice < 0 || choice >= candidates)
    throw new Error(`the choice ${JSON.stringify(choice)} is none of ${candidates} candidates`)
  return { ...CONTINUE, choice }
}

const MAX_URL_CHARACTERS = 8_192

function readFetch(head: Record<string, unknown>, body: Buffer): GuestAnswer {
  const { url, method = 'GET', timeout_ms, state = '' } = head
  if (typeof url !== 'string' || url.length > MAX_URL_CHARACTERS)
    throw new Error(`a fetch needs a url, of ${MAX_URL_CHARACTERS} characters at most`)
  if (typeof method !== 'string' || !/^[A-Z]{1,16}$/.test(method))
    throw new Error(`${JSON.stringify(method)} is no method in upper case`)
  if (timeout_ms !== undefined && !(typeof timeout_ms === 'number' && timeout_ms >= 1))
    throw new Error('timeout_ms is no number from 1 on')
  const ignored: string[] = []
  const headers = allowed(readPairs(head, 'headers'), ignored)
  const fetch = { url, method, headers, body, state: readState(state) }
  return { ...CONTINUE, action: 'fetch', fetch, ignored }
}

function readState(state: unknown): string {
  if (typeof state !== 'string') throw new Error('state is no text')
  if (Buffer.byteLength(state) > MAX_STATE_BYTES)
    throw new Error(`state has more than ${MAX_STATE_BYTES} bytes`)
  return state
}

function readModify(head: Record<string, unknown>, body: Buffer, point: AttachPoint): GuestAnswer {
  const ignored: string[] = []
  const takesStatus = point !== 'OnRequest' && isStatus(head.status)
  if (head.status !== undefined && !takesStatus) ignored.push(`the status ${head.status} is not used`)
  const headers_remove = head.headers_remove ?? []
  if (!isList(headers_remove, (name) => typeof name === 'string')) {
    throw new Error('headers_remove is no list of names')
  }
  checkLength(headers_remove, 'headers_remove')
  const removable = allowed(
    headers_remove.map((name) => [name, ''] as const),
    ignored,
  )
  return {
    ...CONTINUE,
    action: 'modify',
    status: takesStatus ? (head.status as number) : null,
    headers_set: allowed(readPairs(head, 'headers_set'), ignored),
    headers_add: allowed(readPairs(head, 'headers_add'), ignored),
    headers_remove: removable.map(([name]) => name),
    body: head.replaces_body === true ? body : null,
    ignored,
  }
}

const MAX_REFUSAL_BYTES = 65_536

function readToolAnswer(head: Record<string, unknown>, body: Buffer): GuestAnswer {
  if (head.action === 'reject') {
    if (body.length > MAX_REFUSAL_BYTES)
      throw new Error(`the text for the model has more than ${MAX_REFUSAL_BYTES} bytes`)
    const ignored = ['status', 'headers']
      .filter((member) => head[member] !== undefined)
      .map((member) => `${member} is not used: the call of a tool has none`)
    return { ...CONTINUE, action: 'reject', body, ignored }
  }
  if (head.action !== 'modify')
    throw new Error(`the action ${JSON.stringify(head.action)} is neither continue, reject, modify nor fetch`)
  if (head.replaces_body !== true) return { ...CONTINUE, action: 'modify' }
  if (!isJsonObject(body)) throw new Error('the arguments are no JSON object')
  return { ...CONTINUE, action: 'modify', body }
}

function isJsonObject(bytes: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

function readStreamAnswer(head: Record<string, unknown>, body: Buffer): GuestAnswer {
  const { events, state } = head
  if (head.action === 'fetch') throw new Error('a stream waits for no fetch')
  if (events !== undefined && !Array.isArray(events)) throw new Error('events is no list')
  checkLength(events ?? [], 'events')
  return {
    ...CONTINUE,
    events: events === undefined ? null : readEvents(events, body),
    state: state === undefined ? null : readState(state),
  }
}

function readEvents(events: readonly unknown[], body: Buffer): OutgoingEvent[] {
  const inBody = new EventBody(body)
  return events.map((event) => {
    const { name = null, data, data_bytes } = (event ?? {}) as Record<string, unknown>
    const text = data_bytes === undefined ? data : inBody.take(data_bytes)
    if (text === null && data_bytes !== undefined)
      throw new Error('data_bytes of an event is no part of the body')
    if (typeof text !== 'string') throw new Error('an event has no data')
    if (name === null) return { name, data: text }
    if (typeof name !== 'string' || /[\r\n]/.test(name))
      throw new Error('the name of an event is no single line')
    return { name, data: text }
  })
}

function readPairs(head: Record<string, unknown>, member: string): readonly HeaderPair[] {
  const pairs = head[member] ?? []
  const isPair = (pair: unknown): pair is HeaderPair =>
    Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === 'string')
  if (!isList(pairs, isPair)) throw new Error(`${member} is no list of [name, value]`)
  checkLength(pairs, member)
  return pairs
}

function checkLength(list: readonly unknown[], member: string): void {
  if (list.length > MAX_ENTRIES)
    throw new Error(`${member} has ${list.length} entries; the limit is ${MAX_ENTRIES}`)
}

function allowed(pairs: readonly HeaderPair[], ignored: string[]): HeaderPair[] {
  return pairs.filter(([name, value]) => {
    const reason = reasonAgainst(name, value)
    if (reason !== null) ignored.push(`the header ${name} is left out: ${reason}`)
    return reason === null
  })
}

function reasonAgainst(name: string, value: string): string | null {
  if (!HEADER_NAME.test(name)) return 'that is no name of a header'
  if (PROTECTED_HEADERS.includes(name.toLowerCase())) return 'it belongs to the connection'
  return UNSAFE_VALUE.test(value) ? 'its value has line ends or other control characters' : null
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599
}

function isList<T>(value: unknown, isItem: (item: unknown) => item is T): value is T[]
function isList(value: unknown, isItem: (item: unknown) => boolean): value is string[]
function isList(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem)
}
