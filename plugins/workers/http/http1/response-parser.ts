/**
 * @hot Strict incremental parser of HTTP/1.1 responses, independent of sockets.
 *
 * Body bytes of one `push` are delivered in one `onBody`: payloads of several HTTP chunks are joined inside the pushed
 * buffer, so that an event that arrived whole is never split.
 */
import { type HeaderList, TOKEN_BYTE, VALUE_BYTE } from '#kernel'
import { headerName, headerText, ResponseHead } from './response-head.ts'

/** Receives one response. May call `stop()` or `begin()` of the parser from any method. */
export interface ResponseSink {
  /** @param contentLength length of the body, or -1 if not announced */
  onHead(status: number, headers: HeaderList, contentLength: number): void
  /** A part of the pushed buffer: valid during the call only. */
  onBody(chunk: Buffer): void
  /** @param isReusable the connection may carry another request */
  onEnd(isReusable: boolean): void
  /** The response is malformed; no calls follow. */
  onInvalid(problem: string): void
}

const STATUS_LINE = 0
const HEADER_LINE = 1
const CHUNK_LINE = 2
const TRAILER_LINE = 3
/** States up to this one read lines. */
const LAST_LINE_STATE = TRAILER_LINE
const CHUNK_DATA = 4
const CHUNK_CR = 5
const CHUNK_LF = 6
const SIZED_BODY = 7
const BODY_UNTIL_CLOSE = 8
/** From this state on nothing more is read. */
const COMPLETE = 9
const STOPPED = 10

/** Returned by line readers instead of the position after the line. */
const INCOMPLETE = -1
const INVALID = -2

const CR = 13
const LF = 10
const SPACE = 32
const TAB = 9
const ZERO = 48
const COLON = 58
const SEMICOLON = 59

/** Value of a hexadecimal digit, -1 for all other bytes. */
const HEX_DIGIT = new Int8Array(256).fill(-1)
for (let digit = 0; digit < 16; digit++) {
  const char = digit.toString(16)
  HEX_DIGIT[char.charCodeAt(0)] = digit
  HEX_DIGIT[char.toUpperCase().charCodeAt(0)] = digit
}

/** A zero matches any digit. */
const STATUS_SHAPE = Buffer.from('HTTP/0.0 000', 'latin1')
/** Twelve hexadecimal digits are exact in a double. */
const MAX_CHUNK_SIZE_DIGITS = 12

/** Kept of a header line for comparison, per connection. */
const MAX_KNOWN_LINES = 16
const MAX_KNOWN_BYTES = 128

/** A valid header line, which is not parsed again where the next response has the same one. bench: relay-json */
interface KnownLine {
  /** With its line end. */
  readonly bytes: Buffer
  readonly name: string
  readonly value: string
  /** A place whose line was not repeated is not kept again. */
  isRepeated: boolean
}

export class ResponseParser {
  private readonly maxHeaderBytes: number
  private sink: ResponseSink | null = null
  private state = STOPPED
  private isHeadRequest = false
  private readonly head = new ResponseHead()
  /** Remaining bytes of the chunk or of the sized body. */
  private remaining = 0
  /** Remaining bytes allowed for the head, the chunk line or the trailers. */
  private lineBudget = 0
  /** Header lines of earlier responses by their place; null for a place whose lines differ. */
  private readonly known: (KnownLine | null)[] = []
  /** Place of the next header line. */
  private place = 0
  /** The start of an incomplete line. */
  private partial: Buffer | null = null
  private problem = ''

  /** @param maxHeaderBytes limit of a response's head (interim ones included), of its trailers, and of a chunk line */
  constructor(maxHeaderBytes: number) {
    this.maxHeaderBytes = maxHeaderBytes
  }

  /** Expects the response to one request. Only before the first or after a complete response. */
  begin(sink: ResponseSink, isHeadRequest: boolean): void {
    this.sink = sink
    this.isHeadRequest = isHeadRequest
    this.state = STATUS_LINE
    this.lineBudget = this.maxHeaderBytes
    this.head.reset()
  }

  /** Makes no further calls to the sink, also during a `push`. */
  stop(): void {
    this.state = STOPPED
    this.sink = null
    this.partial = null
  }

  /** @param buffer may be modified; retained parts are copied */
  push(buffer: Buffer, length: number): void {
    let position = this.partial === null ? 0 : this.finishLine(this.partial, buffer, length)
    let bodyStart = -1
    let bodyEnd = -1
    while (position >= 0 && position < length && this.state < COMPLETE) {
      const state = this.state
      if (state <= LAST_LINE_STATE) {
        const next = this.readLine(buffer, position, length)
        if (next === INCOMPLETE) this.partial = Buffer.from(buffer.subarray(position, length))
        position = next
      } else if (state === CHUNK_CR || state === CHUNK_LF) {
        position = this.readChunkBorder(buffer, position)
      } else {
        const end = state === BODY_UNTIL_CLOSE ? length : Math.min(length, position + this.remaining)
        if (bodyStart === -1) {
          bodyStart = position
          bodyEnd = end
        } else {
          buffer.copyWithin(bodyEnd, position, end)
          bodyEnd += end - position
        }
        this.remaining -= end - position
        if (this.remaining === 0 && state !== BODY_UNTIL_CLOSE)
          this.state = state === CHUNK_DATA ? CHUNK_CR : COMPLETE
        position = end
      }
    }
    if (bodyStart !== -1) this.sink?.onBody(buffer.subarray(bodyStart, bodyEnd))
    if (position === INVALID) this.fail()
    else if (this.state === COMPLETE) this.end(this.head.isKeptAlive && position === length)
  }

  /** The worker closed its side. @returns whether that completed a response */
  finish(): boolean {
    if (this.state !== BODY_UNTIL_CLOSE) return false
    this.end(false)
    return true
  }

  private end(isReusable: boolean): void {
    const sink = this.sink
    this.stop()
    sink?.onEnd(isReusable)
  }

  private fail(): void {
    const sink = this.sink
    this.stop()
    sink?.onInvalid(this.problem)
  }

  private refuse(problem: string): number {
    this.problem = problem
    return INVALID
  }

  /** Completes the retained line with the first bytes of the next buffer. */
  private finishLine(partial: Buffer, buffer: Buffer, length: number): number {
    const lineFeed = buffer.indexOf(LF)
    const taken = lineFeed === -1 || lineFeed >= length ? length : lineFeed + 1
    const line = Buffer.concat([partial, buffer.subarray(0, taken)])
    this.partial = null
    const next = this.readLine(line, 0, line.length)
    if (next === INCOMPLETE) this.partial = line
    return next < 0 ? next : taken
  }

  private readLine(buffer: Buffer, start: number, end: number): number {
    const limit = Math.min(end, start + this.lineBudget)
    const state = this.state
    const next =
      state === STATUS_LINE
        ? this.readStatusLine(buffer, start, limit)
        : state === CHUNK_LINE
          ? this.readChunkLine(buffer, start, limit)
          : this.readHeaderLine(buffer, start, limit)
    if (next === INCOMPLETE && limit < end) return this.refuse('header or chunk line over the size limit')
    return next
  }

  /** @source RFC 9112 §4 */
  private readStatusLine(buffer: Buffer, start: number, end: number): number {
    for (let at = 0; at < STATUS_SHAPE.length; at++) {
      if (start + at === end) return INCOMPLETE
      const byte = buffer[start + at]
      const shape = STATUS_SHAPE[at]
      if (shape === ZERO ? byte < ZERO || byte > ZERO + 9 : byte !== shape)
        return this.refuse('malformed status line')
    }
    const major = buffer[start + 5] - ZERO
    const minor = buffer[start + 7] - ZERO
    if (major !== 1 || minor > 1) return this.refuse('HTTP version is not 1.0 or 1.1')
    const status =
      (buffer[start + 9] - ZERO) * 100 + (buffer[start + 10] - ZERO) * 10 + buffer[start + 11] - ZERO
    if (status < 100 || status > 599) return this.refuse('status is not between 100 and 599')
    const afterStatus = start + STATUS_SHAPE.length
    if (afterStatus === end) return INCOMPLETE
    if (buffer[afterStatus] !== SPACE && buffer[afterStatus] !== CR)
      return this.refuse('malformed status line')
    const next = this.readLineEnd(buffer, this.skipValue(buffer, afterStatus, end), end)
    if (next < 0) return next
    this.head.start(status, minor)
    this.lineBudget -= next - start
    this.state = HEADER_LINE
    this.place = 0
    return next
  }

  /** A header or trailer line, or the empty line after them. @source RFC 9112 §5, §7.1.2 */
  private readHeaderLine(buffer: Buffer, start: number, end: number): number {
    const place = this.place++
    const known = this.state === HEADER_LINE && place < this.known.length ? this.known[place] : null
    if (known !== null && startsWith(buffer, start, end, known.bytes)) {
      known.isRepeated = true
      const next = start + known.bytes.length
      this.lineBudget -= known.bytes.length
      return this.addHeader(known.name, known.value, next)
    }
    let at = start
    while (at < end && TOKEN_BYTE[buffer[at]] !== 0) at++
    if (at === end) return INCOMPLETE
    if (at === start && buffer[at] === CR) {
      const next = this.readLineEnd(buffer, at, end)
      return next < 0 ? next : this.endLines(next)
    }
    if (at === start || buffer[at] !== COLON) return this.refuse('malformed header line')
    const nameEnd = at
    at++
    while (at < end && (buffer[at] === SPACE || buffer[at] === TAB)) at++
    const valueStart = at
    at = this.skipValue(buffer, at, end)
    const next = this.readLineEnd(buffer, at, end)
    if (next < 0) return next
    this.lineBudget -= next - start
    if (this.state === TRAILER_LINE) return next
    while (at > valueStart && (buffer[at - 1] === SPACE || buffer[at - 1] === TAB)) at--
    const name = headerName(buffer, start, nameEnd)
    const value = headerText(buffer, valueStart, at)
    if (place === this.known.length ? place < MAX_KNOWN_LINES : known !== null) {
      const mayRepeat = known?.isRepeated !== false && next - start <= MAX_KNOWN_BYTES
      const bytes = mayRepeat ? Buffer.from(buffer.subarray(start, next)) : null
      this.known[place] = bytes === null ? null : { bytes, name, value, isRepeated: false }
    }
    return this.addHeader(name, value, next)
  }

  private addHeader(name: string, value: string, next: number): number {
    const problem = this.head.add(name, value)
    return problem === null ? next : this.refuse(problem)
  }

  /** @source RFC 9112 §7.1, §7.1.1 (extensions are skipped) */
  private readChunkLine(buffer: Buffer, start: number, end: number): number {
    let at = start
    let size = 0
    while (at < end && HEX_DIGIT[buffer[at]] !== -1) {
      size = size * 16 + HEX_DIGIT[buffer[at]]
      at++
      if (at - start > MAX_CHUNK_SIZE_DIGITS) return this.refuse('chunk size too large')
    }
    if (at === end) return INCOMPLETE
    if (at === start) return this.refuse('malformed chunk size')
    if (buffer[at] !== CR) {
      while (at < end && (buffer[at] === SPACE || buffer[at] === TAB)) at++
      if (at === end) return INCOMPLETE
      if (buffer[at] !== SEMICOLON) return this.refuse('malformed chunk size')
      at = this.skipValue(buffer, at, end)
    }
    const next = this.readLineEnd(buffer, at, end)
    if (next < 0) return next
    this.remaining = size
    this.state = size === 0 ? TRAILER_LINE : CHUNK_DATA
    return next
  }

  /** The CR, then the LF after a chunk's data. */
  private readChunkBorder(buffer: Buffer, position: number): number {
    const isAtCr = this.state === CHUNK_CR
    if (buffer[position] !== (isAtCr ? CR : LF)) return this.refuse('chunk data longer than its size')
    if (isAtCr) this.state = CHUNK_LF
    else {
      this.state = CHUNK_LINE
      this.lineBudget = this.maxHeaderBytes
    }
    return position + 1
  }

  private skipValue(buffer: Buffer, start: number, end: number): number {
    let at = start
    while (at < end && VALUE_BYTE[buffer[at]] !== 0) at++
    return at
  }

  private readLineEnd(buffer: Buffer, at: number, end: number): number {
    if (at === end) return INCOMPLETE
    if (buffer[at] !== CR) return this.refuse('control character in a line')
    if (at + 1 === end) return INCOMPLETE
    return buffer[at + 1] === LF ? at + 2 : this.refuse('carriage return without line feed')
  }

  /** After the empty line of a head or of the trailers, which ends at `position`. */
  private endLines(position: number): number {
    if (this.state === TRAILER_LINE) {
      this.state = COMPLETE
      return position
    }
    const head = this.head
    if (head.status < 200) {
      this.state = STATUS_LINE
      head.reset()
      return head.status === 101 ? this.refuse('the worker switched protocols') : position
    }
    const hasNoBody = this.isHeadRequest || head.status === 204 || head.status === 304
    const contentLength = hasNoBody ? 0 : head.contentLength
    this.remaining = contentLength
    this.lineBudget = this.maxHeaderBytes
    if (contentLength === 0) this.state = COMPLETE
    else if (head.isChunked) this.state = CHUNK_LINE
    else if (contentLength > 0) this.state = SIZED_BODY
    else {
      this.state = BODY_UNTIL_CLOSE
      head.isKeptAlive = false
    }
    this.sink?.onHead(head.status, head.takeHeaders(), contentLength)
    return position
  }
}

function startsWith(buffer: Buffer, start: number, end: number, bytes: Buffer): boolean {
  const { length } = bytes
  if (end - start < length) return false
  for (let at = 0; at < length; at++) if (buffer[start + at] !== bytes[at]) return false
  return true
}
