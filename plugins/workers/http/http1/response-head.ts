/** @hot The head of an HTTP/1.1 response: its status and headers, and what they say about the end of the response. */
import { type HeaderList, toContentLength } from '#kernel'

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
