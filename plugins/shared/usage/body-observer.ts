/** Reads the token usage of a JSON body that is passed on without being collected, from its bytes as they pass. */
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  type ObservedEnd,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  type ResponseObserver,
  type TokenUsage,
  usageOfJson,
} from '#kernel'

const USAGE = Buffer.from('usage')
const TIER = Buffer.from('service_tier')
const MAX_TIER_LENGTH = 64
/** A longer usage object is ignored. */
const MAX_USAGE_BYTES = 16_384

/** The end of a body that passes unchanged. @param bytes of the body, for an estimate */
export function endOfBody(usage: TokenUsage | null, bytes: number): ObservedEnd {
  const hasOutputUsage = usage !== null
  const unreadBytes = hasOutputUsage ? 0 : bytes
  return { end: 'complete', rest: Buffer.alloc(0), usage, hasOutputUsage, outputEvents: 0, unreadBytes }
}

/** The last member `usage` of the top-level object, and its `service_tier`; inner objects are content that a model may choose. */
export class BodyObserver implements ResponseObserver {
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** A string at the top level would be a key. */
  #expectsKey = false
  /** Bytes of the current key that match `#candidate`; -1 once it differs, or outside of keys. */
  #matched = -1
  #candidate = USAGE
  /** The last key, if it was one of the two. */
  #key: Buffer | null = null
  /** The string that is read as the tier. */
  #isInTier = false
  #tier = ''
  /** Parts of the usage object so far; null outside of it. */
  #parts: Buffer[] | null = null
  #partBytes = 0
  #text: string | null = null
  #bodyBytes = 0

  chunk(chunk: Buffer): Buffer {
    let start = 0
    this.#bodyBytes += chunk.length
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (this.#isInString) this.#inString(byte)
      else if (byte === QUOTE) this.#openString()
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (this.#depth === 1 && this.#key === USAGE && byte === OPEN_BRACE) {
          this.#parts = []
          this.#partBytes = 0
          start = at
        }
        this.#depth++
        this.#expectsKey = this.#depth === 1 && byte === OPEN_BRACE
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        this.#depth--
        if (this.#depth === 1 && this.#parts !== null) this.#close(chunk.subarray(start, at + 1))
      } else if (this.#depth === 1 && byte === COMMA) {
        this.#expectsKey = true
        this.#key = null
      } else if (this.#depth === 1 && byte === COLON) this.#expectsKey = false
    }
    if (this.#parts !== null) this.#keep(chunk.subarray(start))
    return chunk
  }

  #openString(): void {
    this.#isInString = true
    const isKey = this.#depth === 1 && this.#expectsKey
    this.#matched = isKey ? 0 : -1
    if (isKey) this.#key = null
    this.#isInTier = this.#depth === 1 && this.#key === TIER
    if (this.#isInTier) this.#tier = ''
  }

  #inString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    else if (byte === QUOTE) {
      this.#isInString = false
      if (this.#matched === this.#candidate.length) this.#key = this.#candidate
      this.#matched = -1
      this.#isInTier = false
      return
    }
    if (this.#matched === 0) this.#candidate = byte === TIER[0] ? TIER : USAGE
    if (this.#matched >= 0) this.#matched = byte === this.#candidate[this.#matched] ? this.#matched + 1 : -1
    if (this.#isInTier && this.#tier.length < MAX_TIER_LENGTH) this.#tier += String.fromCharCode(byte)
  }

  #close(last: Buffer): void {
    this.#keep(last)
    if (this.#parts !== null) this.#text = Buffer.concat(this.#parts).toString('utf8')
    this.#parts = null
  }

  #keep(part: Buffer): void {
    this.#partBytes += part.length
    if (this.#partBytes > MAX_USAGE_BYTES) this.#parts = null
    else this.#parts?.push(Buffer.from(part))
  }

  end(): ObservedEnd {
    return endOfBody(this.#text === null ? null : usageOfJson(this.#text, this.#tier), this.#bodyBytes)
  }
}
