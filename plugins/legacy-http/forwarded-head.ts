/** Makes the head of the inner request: the framing checked, headers of one connection left out, the client named. */
import type { ClientAddressing } from '#kernel'
import { legacyErrors } from './errors.ts'
import { readTarget } from './target.ts'

/** A request as the parser gives it; values are latin1. */
export interface ReceivedHead {
  readonly method?: string
  readonly url?: string
  readonly httpVersion: string
  /** [name, value, …] */
  readonly rawHeaders: readonly string[]
}

export interface ForwardedHead {
  readonly method: string
  readonly path: string
  /** [name, value, …] without Connection and Upgrade. */
  readonly headers: string[]
  /** Bytes; null when the client gave none. */
  readonly contentLength: number | null
  readonly isChunked: boolean
}

export interface ForwardingTerms {
  /** Of the connection's other end. */
  readonly peer: string
  /** Header lines at most. */
  readonly maxCount: number
  /** Whose word about clients is taken; null where nobody's is. */
  readonly clients: ClientAddressing | null
}

/** @source RFC 9110 section 7.6.1; Expect is answered here */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'proxy-authorization',
  'expect',
])
const FORWARDED_FOR = 'x-forwarded-for'
/** What a client may not have dropped by naming it in Connection. */
const KEPT: ReadonlySet<string> = new Set(['host', 'content-length', FORWARDED_FOR])
/** For HTTP/1.0 clients that name none: the same as no page of a browser can have. @source RFC 2606 */
const NO_HOST = 'unnamed.invalid'
const ASCII_END = 0x7f

/** @throws bad_framing, header_not_ascii, headers_too_large */
export function forwardedHead(
  head: ReceivedHead,
  { peer, maxCount, clients }: ForwardingTerms,
): ForwardedHead {
  const { rawHeaders } = head
  const method = head.method ?? ''
  const { path, host } = readTarget(method, head.url ?? '')
  if (rawHeaders.length / 2 > maxCount) throw legacyErrors.headers_too_large(`${maxCount} lines`)
  const dropped = connectionHeaders(rawHeaders)
  const headers: string[] = []
  const forwardedFor: string[] = []
  /** Lines of the header that the gateway behind takes from this machine, where that is another one. */
  const named: string[] = []
  const namedIn = clients === null || clients.header === FORWARDED_FOR ? null : clients.header
  const framing = { hosts: [] as string[], lengths: [] as string[], codings: [] as string[] }
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i].toLowerCase(), rawHeaders[i + 1]]
    if (!hasAsciiEnds(value)) throw legacyErrors.header_not_ascii(name)
    if (name === 'host') framing.hosts.push(value)
    else if (name === 'content-length') framing.lengths.push(value)
    else if (name === 'transfer-encoding') framing.codings.push(value)
    else if (name === FORWARDED_FOR) forwardedFor.push(value)
    else if (name === namedIn) named.push(name, value)
    else if (!HOP_BY_HOP.has(name) && !dropped.has(name)) headers.push(name, value)
  }
  const isLate = head.httpVersion === '1.1'
  checkFraming(framing, isLate)
  const [length] = framing.lengths
  const isChunked = framing.codings.length === 1
  headers.push('host', host ?? framing.hosts[0] ?? NO_HOST)
  headers.push(FORWARDED_FOR, [...forwardedFor, peer].filter((one) => one !== '').join(', '))
  // There one address stands for all before it: what the client writes counts only if its own word does.
  if (clients !== null && namedIn !== null) headers.push(namedIn, clients.addressOf(peer, named))
  if (isChunked) headers.push('transfer-encoding', 'chunked')
  // One that is not sent would be taken for a chunked body.
  else if (length !== undefined || !hasNoBody(method)) headers.push('content-length', length ?? '0')
  return { method, path, headers, contentLength: length === undefined ? null : Number(length), isChunked }
}

/** Headers that the message's Connection names: they are about one connection only. */
export function connectionHeaders(rawHeaders: readonly string[]): Set<string> {
  const named = new Set<string>()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i].toLowerCase() !== 'connection') continue
    for (const part of rawHeaders[i + 1].split(',')) named.add(part.trim().toLowerCase())
  }
  for (const name of KEPT) named.delete(name)
  return named
}

/** Headers of an answer for the client: [name, value, …]. Framing is written anew. */
export function answerHeaders(rawHeaders: readonly string[]): string[] {
  const dropped = connectionHeaders(rawHeaders)
  const headers: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i].toLowerCase()
    if (!HOP_BY_HOP.has(name) && !dropped.has(name)) headers.push(rawHeaders[i], rawHeaders[i + 1])
  }
  return headers
}

/** The parser refuses both framings at once, and lengths that differ or are no numbers. @source RFC 9112 section 6.3 */
function checkFraming(
  { hosts, lengths, codings }: { hosts: string[]; lengths: string[]; codings: string[] },
  isLate: boolean,
): void {
  if (hosts.length > 1) throw legacyErrors.bad_framing('host must be sent once')
  if (hosts.length === 0 && isLate) throw legacyErrors.bad_framing('a request of HTTP/1.1 must have a host')
  if (lengths.length > 1) throw legacyErrors.bad_framing('content-length must be sent once')
  if (lengths.length === 1 && !/^\d{1,15}$/.test(lengths[0]))
    throw legacyErrors.bad_framing('content-length must be a whole number')
  if (codings.length === 0) return
  if (!isLate) throw legacyErrors.bad_framing('HTTP/1.0 has no transfer-encoding')
  if (lengths.length > 0)
    throw legacyErrors.bad_framing('content-length and transfer-encoding exclude each other')
  if (codings.length > 1 || codings[0] !== 'chunked')
    throw legacyErrors.bad_framing("transfer-encoding must be exactly 'chunked'")
}

function hasAsciiEnds(value: string): boolean {
  if (value === '') return true
  return value.charCodeAt(0) <= ASCII_END && value.charCodeAt(value.length - 1) <= ASCII_END
}

function hasNoBody(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'DELETE'
}
