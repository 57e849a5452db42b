/** Selects the headers of a worker's response that the client receives. @hot */
import type { HeaderList } from '../contracts/transport.ts'
import { headerOf } from '../wire/headers.ts'

/** Names that clients receive from every route: the body's description, caching, and hints for retries. */
const PASSED_NAMES: readonly string[] = [
  'allow',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-type',
  'deprecation',
  'etag',
  'expires',
  'last-modified',
  'request-id',
  'retry-after',
  'retry-after-ms',
  'sunset',
  'vary',
  'warning',
  'x-should-retry',
]

/** Rate limits and request details of cloud services. */
const PASSED_PREFIX = /^(?:anthropic-|openai-|ratelimit|x-ratelimit-)/

/** Hop-by-hop headers, and those that the gateway writes: they do not pass even if the setting lists them. */
const NEVER_PASSED: ReadonlySet<string> = new Set([
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
  // Reserved for errors of this gateway.
  'x-weir-error-code',
  'x-request-id',
  'x-weir-model',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'access-control-allow-credentials',
])

/** Allow-list of the headers that clients receive of a worker's response. */
export class ClientHeaders {
  readonly #names: ReadonlySet<string>

  /** @param more the setting `kernel.upstream.forwardResponseHeaders` */
  constructor(more: readonly string[]) {
    const names = [...PASSED_NAMES, ...more.map((name) => name.toLowerCase())]
    this.#names = new Set(names.filter((name) => !NEVER_PASSED.has(name)))
  }

  /** @param headers names lower-case */
  of(headers: HeaderList): HeaderList {
    const kept: HeaderList = []
    let options: string | undefined
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i]
      if (this.#names.has(name) || PASSED_PREFIX.test(name)) kept.push(name, headers[i + 1])
      else if (name === 'connection')
        options = options === undefined ? headers[i + 1] : `${options},${headers[i + 1]}`
    }
    if (options !== undefined && options !== 'keep-alive' && options !== 'close') dropNamed(kept, options)
    return kept
  }
}

/** Headers that the worker's Connection header lists are hop-by-hop too. @source RFC 9110 §7.6.1 */
function dropNamed(headers: HeaderList, options: string): void {
  const names = new Set<string>()
  for (const name of options.split(',')) names.add(name.trim().toLowerCase())
  for (let i = headers.length - 2; i >= 0; i -= 2) if (names.has(headers[i])) headers.splice(i, 2)
}

/** With any parameters. @source RFC 9110 §8.3.1 */
const EVENT_STREAM = /^text\/event-stream(?:[; \t]|$)/i
/** Media types of events and of lines of JSON. */
const STREAM_TYPE = /event-stream|ndjson|jsonl/i

/** True for a body that arrives in parts which clients read one by one. */
export function isStream(headers: HeaderList): boolean {
  return STREAM_TYPE.test(headerOf(headers, 'content-type') ?? '')
}

const JSON_TYPE = /json|event-stream/i

/** True for a body of JSON, or of events with JSON. */
export function isJson(headers: HeaderList): boolean {
  return JSON_TYPE.test(headerOf(headers, 'content-type') ?? '')
}

/** True for a page, such as the sign-in form of a proxy: no inference API answers with one. */
export function isPage(headers: HeaderList): boolean {
  return headerOf(headers, 'content-type')?.startsWith('text/html') === true
}

/** True for an uncompressed event stream, in which heartbeat lines may be inserted between events. */
export function isPlainEventStream(headers: HeaderList): boolean {
  return (
    EVENT_STREAM.test(headerOf(headers, 'content-type') ?? '') &&
    (headerOf(headers, 'content-encoding') ?? 'identity').toLowerCase() === 'identity'
  )
}
