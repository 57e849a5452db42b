/**
 * Copies the declared request headers, rejects invalid ones that the server library accepts, and finds or makes the request id.
 * @hot @source RFC 9112 sections 5, 6.3
 */
import type { HttpRequest } from 'uWebSockets.js'
import { randomFillSync } from 'node:crypto'
import type { HeaderList } from '../contracts/transport.ts'
import type { GatewayError } from '../errors/gateway-error.ts'
import { headerOf, isFieldValue, isHost, isToken, removeHeader, toContentLength } from '../wire/headers.ts'
import { httpErrors } from './http-errors.ts'

/** Actions for a header: keep it for handlers, forward it to the worker, check the framing, use it as request id. */
const KEEP = 1
const FORWARD = 2
const FRAMING = 4
const REQUEST_ID = 8
/** Never copied to workers: headers that the relay or transport writes, and connection headers. */
const WRITTEN_ELSEWHERE = new Set([
  'authorization',
  'x-request-id',
  'content-type',
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
])

const FRAMING_NAMES = new Set(['host', 'content-length', 'transfer-encoding', 'connection'])

export interface HeaderRules {
  readonly actions: ReadonlyMap<string, number>
  readonly requestIdHeaders: readonly string[]
  readonly maxCount: number
  readonly maxBytes: number
}

export interface CopiedHeaders {
  /** Declared headers as received: [name, value, …]. */
  readonly kept: string[]
  /** Headers of the allow-list, for the worker; the relay adds authorization and x-request-id. */
  readonly forwarded: HeaderList
  /** -1 when absent. */
  readonly contentLength: number
  /** From the first configured header with a usable value; empty otherwise. */
  readonly requestId: string
  problem: GatewayError | null
}

export function headerRules(options: {
  declared: Iterable<string>
  forwarded: readonly string[]
  requestIdHeaders: readonly string[]
  maxCount: number
  maxBytes: number
}): HeaderRules {
  const actions = new Map<string, number>()
  const add = (name: string, action: number) => actions.set(name, (actions.get(name) ?? 0) | action)
  for (const name of options.declared) add(name, KEEP)
  for (const name of options.requestIdHeaders) add(name.toLowerCase(), REQUEST_ID | KEEP)
  for (const given of options.forwarded) {
    const name = given.toLowerCase()
    add(name, WRITTEN_ELSEWHERE.has(name) ? KEEP : FORWARD | KEEP)
  }
  for (const name of ['authorization', 'x-api-key', 'origin', 'content-type', 'content-encoding'])
    add(name, KEEP)
  for (const name of ['content-length', 'transfer-encoding', 'host']) add(name, FRAMING | KEEP)
  return {
    actions,
    requestIdHeaders: options.requestIdHeaders.map((name) => name.toLowerCase()),
    maxCount: options.maxCount,
    maxBytes: options.maxBytes,
  }
}

/** State of the current copy, which is synchronous. Saves a closure per request. */
let rules: HeaderRules
let keepAll = false
let kept: string[]
let forwarded: string[]
let count = 0
let bytes = 0
let contentLength = -1
let mayHaveRequestId = false
let problem: GatewayError | null

/** @param keepsAll keeps every header, not only declared ones */
export function copyHeaders(req: HttpRequest, headerRules: HeaderRules, keepsAll: boolean): CopiedHeaders {
  rules = headerRules
  keepAll = keepsAll
  kept = []
  forwarded = []
  count = 0
  bytes = 0
  contentLength = -1
  mayHaveRequestId = false
  problem = null
  req.forEach(visit)
  if (count > rules.maxCount) problem = httpErrors.headers_too_large(`${rules.maxCount} lines`)
  else if (bytes > rules.maxBytes) problem = httpErrors.headers_too_large(`${rules.maxBytes} bytes`)
  return { kept, forwarded, contentLength, requestId: mayHaveRequestId ? findRequestId() : '', problem }
}

function visit(name: string, value: string): void {
  count++
  bytes += name.length + value.length + 4
  const action = rules.actions.get(name)
  if (action === undefined) {
    if (keepAll) kept.push(name, value)
    if (name.startsWith('x-request-id-')) forwarded.push(name, value)
    return
  }
  if (keepAll || (action & KEEP) !== 0) kept.push(name, value)
  if ((action & FORWARD) !== 0) forwarded.push(name, value)
  if ((action & FRAMING) !== 0) checkFraming(name, value)
  if ((action & REQUEST_ID) !== 0) mayHaveRequestId = true
}

function checkFraming(name: string, value: string): void {
  if (name === 'content-length') {
    const length = toContentLength(value)
    if (contentLength !== -1) problem = httpErrors.bad_framing('content-length must be sent once')
    else if (length < 0) problem = httpErrors.bad_framing('content-length must be a whole number')
    contentLength = length
  } else if (name === 'host') {
    if (!isHost(value)) problem = httpErrors.bad_framing('host must be the name or address of a host')
  } else if (value !== 'chunked') {
    problem = httpErrors.bad_framing("transfer-encoding must be exactly 'chunked'")
  }
}

function findRequestId(): string {
  for (const name of rules.requestIdHeaders) {
    const value = headerOf(kept, name)
    if (value !== undefined && isUsableRequestId(value)) return value
  }
  return ''
}

/** Checks a header set by a plugin: a transport would drop it silently. @throws TypeError */
export function assertHeader(name: string, value: string): void {
  if (!isToken(name)) throw new TypeError(`"${name}" is no name of a header`)
  if (!isFieldValue(value))
    throw new TypeError(`the value for header ${name} has characters that no header can hold`)
}

/**
 * Changes a header for handlers and for the worker. Headers that the relay or the transport writes change for handlers only;
 * framing headers do not change.
 */
export function changeHeader(
  { kept, forwarded }: CopiedHeaders,
  change: 'set' | 'add' | 'remove',
  name: string,
  value: string,
): void {
  if (FRAMING_NAMES.has(name)) return
  const isForwarded = !WRITTEN_ELSEWHERE.has(name)
  if (change === 'remove') {
    removeHeader(kept, name)
    if (isForwarded) removeHeader(forwarded, name)
  } else if (change === 'add') {
    kept.push(name, value)
    if (isForwarded) forwarded.push(name, value)
  } else {
    setHeader(kept, name, value)
    if (isForwarded) setHeader(forwarded, name, value)
  }
}

/** Replaces the first one in place, which keeps the order of the others. */
function setHeader(headers: string[], name: string, value: string): void {
  let place = 0
  while (place < headers.length && headers[place] !== name) place += 2
  if (place === headers.length) headers.push(name, value)
  else {
    headers[place + 1] = value
    removeHeader(headers, name, place + 2)
  }
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const ID_CHARS = 24
const BATCH = 256

/** Random letters for the next ids, made in batches: one random call and one slice per id. bench: relay-json */
const pool = Buffer.alloc(ID_CHARS * BATCH)
let used = pool.length

/** @returns the prefix and 24 random characters of A-Z, a-z, 0-9 */
export function makeRequestId(prefix: string): string {
  if (used === pool.length) refill()
  const id = prefix + pool.toString('latin1', used, used + ID_CHARS)
  used += ID_CHARS
  return id
}

function refill(): void {
  randomFillSync(pool)
  for (let i = 0; i < pool.length; i++) pool[i] = ALPHABET.charCodeAt(pool[i] % 62)
  used = 0
}

/** True for a value that may be echoed: not empty, printable ASCII only. */
function isUsableRequestId(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i)
    if (code < 0x20 || code > 0x7e) return false
  }
  return value.length > 0
}
