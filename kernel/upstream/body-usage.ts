/** Token usage of a body that is passed on without being collected: read from its bytes as they pass. */
import type { UsageReport } from '../contracts/relay-options.ts'
import type { TokenUsage } from '../contracts/request.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../wire/json-bytes.ts'
import { sumOfUsage, usageOfJson, usageOfMetaInfo } from './token-usage.ts'

const USAGE = Buffer.from('usage')
const TIER = Buffer.from('service_tier')
const MAX_TIER_LENGTH = 64
/** A longer usage object is ignored. */
const MAX_USAGE_BYTES = 16_384
/** Longer than a member of `meta_info` with its count. */
const MEMBER_BYTES = 64
const NO_BYTES = Buffer.alloc(0)

export class BodyUsage {
  readonly #reader: TopLevelUsage | MetaInfoSum
  /** Of the request, for an estimate. */
  readonly requestBytes: number
  /** Of the body so far. */
  byteCount = 0

  constructor(report: UsageReport, requestBytes: number) {
    this.requestBytes = requestBytes
    this.#reader = report === 'meta_info' ? new MetaInfoSum() : new TopLevelUsage()
  }

  /** @param chunk a view, valid during the call */
  push(chunk: Buffer): void {
    this.byteCount += chunk.length
    this.#reader.push(chunk)
  }

  /** Null if none was found. */
  usage(): TokenUsage | null {
    return this.#reader.usage()
  }
}

/** The last member `usage` of the top-level object, and its `service_tier`; inner objects are content that a model may choose. */
class TopLevelUsage {
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

  push(chunk: Buffer): void {
    let start = 0
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

  usage(): TokenUsage | null {
    return this.#text === null ? null : usageOfJson(this.#text, this.#tier)
  }
}

/** Sums of the counts of all answers. */
class MetaInfoSum {
  #sum: TokenUsage | null = null
  /** Bytes in which a member may be incomplete. */
  #rest: Buffer = NO_BYTES

  push(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#rest, chunk])
    const until = Math.max(0, bytes.length - MEMBER_BYTES)
    this.#add(usageOfMetaInfo(bytes, until))
    this.#rest = bytes.subarray(until)
  }

  usage(): TokenUsage | null {
    this.#add(usageOfMetaInfo(this.#rest))
    this.#rest = NO_BYTES
    return this.#sum
  }

  #add(usage: TokenUsage | null): void {
    if (usage !== null) this.#sum = this.#sum === null ? usage : sumOfUsage(this.#sum, usage)
  }
}
