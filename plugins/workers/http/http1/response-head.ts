/** @hot The head of an HTTP/1.1 response: its status and headers, decoded, and what they say about the end of the response. */
import { isUtf8 } from 'node:buffer'
import { type HeaderList, TOKEN_BYTE, toContentLength } from '#kernel'

/** Placeholder between two responses; never written to. */
const NO_HEADERS: HeaderList = []

export class ResponseHead {
  status = 0
  /** -1 if not announced. */
  contentLength = -1
  isChunked = false
  /** The worker keeps the connection open after the response. */
  isKeptAlive = true
  private headers: HeaderList = NO_HEADERS
  private isOldVersion = false

  /** Before the status line of a response, interim ones included. */
  reset(): void {
    this.headers = []
    this.contentLength = -1
    this.isChunked = false
  }

  /** @param minor of the version HTTP/1.x */
  start(status: number, minor: number): void {
    this.status = status
    this.isOldVersion = minor === 0
    this.isKeptAlive = minor === 1
  }

  /** @returns why the header is invalid; null if it is valid @source RFC 9112 §6.1, §6.2, §6.3, §9.3 */
  add(name: string, value: string): string | null {
    if (name === 'content-length') {
      const length = toContentLength(value)
      if (length === -1 || this.isChunked || (this.contentLength !== -1 && this.contentLength !== length))
        return 'invalid or conflicting content-length'
      if (this.contentLength === length) return null
      this.contentLength = length
    } else if (name === 'transfer-encoding') {
      if (this.isChunked || this.contentLength !== -1 || this.isOldVersion || !isChunkedCoding(value))
        return 'invalid or conflicting transfer-encoding'
      this.isChunked = true
    } else if (name === 'connection') {
      if (value !== 'keep-alive' && hasCloseOption(value)) this.isKeptAlive = false
    }
    this.headers.push(name, value)
    return null
  }

  takeHeaders(): HeaderList {
    const headers = this.headers
    this.headers = NO_HEADERS
    return headers
  }
}

/** No other coding is accepted, alone or combined with `chunked`. @source RFC 9112 §6.1 */
function isChunkedCoding(value: string): boolean {
  return value === 'chunked' || value.toLowerCase() === 'chunked'
}

/** Whether a Connection header names the option `close`. @source RFC 9112 §9.6 */
function hasCloseOption(value: string): boolean {
  if (value === 'close') return true
  for (const option of value.split(',')) if (option.trim().toLowerCase() === 'close') return true
  return false
}

const COMMON_NAMES = [
  'accept-ranges',
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'alt-svc',
  'cache-control',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'etag',
  'expires',
  'keep-alive',
  'last-modified',
  'openai-organization',
  'openai-processing-ms',
  'openai-version',
  'pragma',
  'retry-after',
  'server',
  'set-cookie',
  'strict-transport-security',
  'trailer',
  'transfer-encoding',
  'vary',
  'via',
  'x-accel-buffering',
  'x-content-type-options',
  'x-powered-by',
  'x-request-id',
]

/** Hash table by length, first and last letter; in a collision the later name wins. */
const nameTable: (string | undefined)[] = new Array(4096).fill(undefined)
for (const name of COMMON_NAMES)
  nameTable[nameCell(name.length, name.charCodeAt(0), name.charCodeAt(name.length - 1))] = name

function nameCell(length: number, first: number, last: number): number {
  return (length * 131 + first * 31 + last * 7) & 4095
}

/**
 * A header name in lower case; common names are interned.
 * All bytes from `start` to `end` must be token bytes, at least one.
 */
export function headerName(buffer: Buffer, start: number, end: number): string {
  const length = end - start
  const common = nameTable[nameCell(length, TOKEN_BYTE[buffer[start]], TOKEN_BYTE[buffer[end - 1]])]
  if (common !== undefined && common.length === length) {
    let at = 0
    while (at < length && common.charCodeAt(at) === TOKEN_BYTE[buffer[start + at]]) at++
    if (at === length) return common
  }
  return buffer.toString('latin1', start, end).toLowerCase()
}

/** A header value, decoded as UTF-8 if valid, otherwise as latin1. */
export function headerText(buffer: Buffer, start: number, end: number): string {
  let at = start
  while (at < end && buffer[at] < 0x80) at++
  if (at === end || !isUtf8(buffer.subarray(start, end))) return buffer.toString('latin1', start, end)
  return buffer.toString('utf8', start, end)
}
