/** Which headers of a worker's answer reach the client. @hot */
import type { HeaderList } from '../contracts/transport.ts'

/** Hop-by-hop headers, and those that the gateway writes itself. Content-encoding passes with its bytes. */
const dropped = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'trailers',
  'transfer-encoding',
  'upgrade',
  'host',
  'content-length',
  // The server library writes its own.
  'date',
  'uwebsockets',
  // Only this gateway's own errors may look like its own.
  'x-weir-error-code',
  'x-request-id',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'access-control-allow-credentials',
])

export function toClientHeaders(headers: HeaderList): HeaderList {
  const kept: HeaderList = []
  let options: string | undefined
  for (let i = 0; i < headers.length; i += 2) {
    if (!dropped.has(headers[i])) kept.push(headers[i], headers[i + 1])
    else if (headers[i] === 'connection')
      options = options === undefined ? headers[i + 1] : `${options},${headers[i + 1]}`
  }
  if (options !== undefined && options !== 'keep-alive' && options !== 'close') dropNamed(kept, options)
  return kept
}

/** What the worker's Connection header names is about its connection, not for the client. @source RFC 9110 §7.6.1 */
function dropNamed(headers: HeaderList, options: string): void {
  const names = new Set<string>()
  for (const name of options.split(',')) names.add(name.trim().toLowerCase())
  for (let i = headers.length - 2; i >= 0; i -= 2) if (names.has(headers[i])) headers.splice(i, 2)
}

const EVENT_STREAM = 'text/event-stream'

/** Media types count whatever their case and without parameters. @source RFC 9110 §8.3.1 */
function isEventStreamType(type: string): boolean {
  const { length } = EVENT_STREAM
  // Nearly every worker writes it so.
  if (!type.startsWith(EVENT_STREAM) && type.slice(0, length).toLowerCase() !== EVENT_STREAM) return false
  return type.length === length || type[length] === ';' || type[length] === ' ' || type[length] === '\t'
}

/**
 * True when events stand in the body as they are, so that lines may be added between them. In a compressed one the
 * same bytes mean something else.
 */
export function isPlainEventStream(headers: HeaderList): boolean {
  let isEventStream = false
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] === 'content-type') isEventStream = isEventStreamType(headers[i + 1])
    else if (headers[i] === 'content-encoding' && headers[i + 1].toLowerCase() !== 'identity') return false
  }
  return isEventStream
}

/** First value of a name in a flat header list. */
export function headerOf(headers: HeaderList, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1]
  return undefined
}
