/**
 * @hot
 * Decodes ids one at a time by the rules of the vocabulary's decoder, and returns whole characters only.
 */
import type { DecoderOptions, TokenDecoder } from '#kernel'
import { StopSearch } from '#shared'
import type { DecoderRules } from './decoder-rules.ts'
import type { TokenTable } from './token-table.ts'

const REPLACEMENT = '�'
/** Keeps a byte order mark, which may be part of the text. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

export class IdDecoder {
  readonly #table: TokenTable
  readonly #rules: DecoderRules
  readonly #skipsSpecial: boolean
  readonly #isSpaced: boolean
  readonly #isContinuation: boolean
  /** Bytes of an unfinished character. */
  readonly #pending = Buffer.alloc(4)
  #pendingLength = 0
  #stripLeft: number
  #isFirst = true
  /** The last id was an added token, around which spaces are inserted. */
  #lastWasAdded = false
  #hasText = false

  constructor(table: TokenTable, rules: DecoderRules, options: DecoderOptions) {
    this.#table = table
    this.#rules = rules
    this.#skipsSpecial = options.skipSpecialTokens ?? true
    this.#isSpaced = options.spacesBetweenSpecialTokens ?? false
    this.#isContinuation = options.isContinuation ?? false
    this.#stripLeft = this.#isContinuation ? 0 : rules.stripCount
  }

  /** Returns the text that is complete now; empty for unknown ids. */
  push(id: number): string {
    const table = this.#table
    if (!table.has(id)) return ''
    if (this.#skipsSpecial && table.isSpecial(id)) return ''
    let text: string
    if (this.#pendingLength === 0 && table.isWhole(id)) text = table.text(id)
    else if (this.#rules.kind === 'bytes') text = this.#join(table.bytes(id))
    else if (table.isByte(id)) text = this.#takeByte(table.bytes(id)[0])
    else text = this.#giveUpPending() + table.text(id)
    if (this.#isFirst || this.#isSpaced || this.#rules.kind === 'spaced') text = this.#withSpaces(text, id)
    if (this.#stripLeft > 0 && text !== '') text = this.#strip(text)
    return text
  }

  /** Returns replacement characters for an incomplete character. */
  end(): string {
    if (this.#rules.kind !== 'bytes') return this.#giveUpPending()
    const text = utf8.decode(this.#pending.subarray(0, this.#pendingLength))
    this.#pendingLength = 0
    return text
  }

  #withSpaces(given: string, id: number): string {
    let text = given
    if (this.#isFirst) {
      this.#isFirst = false
      if (this.#rules.firstDropsSpaces && !this.#isContinuation) text = text.replaceAll(' ', '')
    } else if (this.#rules.kind === 'spaced') text = this.#afterWord(text)
    if (this.#rules.cleansSpaces) text = withoutSpaces(text)
    if (!this.#isSpaced) return text
    const isAdded = this.#table.isAdded(id)
    const isBorder = this.#hasText && (isAdded || this.#lastWasAdded)
    this.#lastWasAdded = isAdded
    this.#hasText = true
    return isBorder ? ` ${text}` : text
  }

  #afterWord(text: string): string {
    const { wordPrefix } = this.#rules
    return wordPrefix !== null && text.startsWith(wordPrefix) ? text.slice(wordPrefix.length) : ` ${text}`
  }

  #join(bytes: Buffer): string {
    const all = this.#pendingLength === 0 ? bytes : Buffer.concat([this.#takePending(), bytes])
    const rest = unfinishedBytes(all, all.length)
    all.copy(this.#pending, 0, all.length - rest)
    this.#pendingLength = rest
    return rest === all.length ? '' : utf8.decode(all.subarray(0, all.length - rest))
  }

  #takePending(): Buffer {
    return this.#pending.subarray(0, this.#pendingLength)
  }

  #takeByte(byte: number): string {
    let before = ''
    this.#pending[this.#pendingLength++] = byte
    if (unfinishedBytes(this.#pending, this.#pendingLength) === this.#pendingLength) return ''
    const text = utf8.decode(this.#takePending())
    if (!text.includes(REPLACEMENT) || isReplacement(this.#pending, this.#pendingLength)) {
      this.#pendingLength = 0
      return text
    }
    // The pending bytes are invalid, and this byte may begin a new character.
    this.#pendingLength--
    before = this.#giveUpPending()
    this.#pending[0] = byte
    this.#pendingLength = 1
    if (unfinishedBytes(this.#pending, 1) === 1) return before
    this.#pendingLength = 0
    return before + (byte < 0x80 ? String.fromCharCode(byte) : REPLACEMENT)
  }

  /** Returns one replacement character per byte, as vocabularies with byte pieces do. */
  #giveUpPending(): string {
    const text = REPLACEMENT.repeat(this.#pendingLength)
    this.#pendingLength = 0
    return text
  }

  #strip(given: string): string {
    const { strip } = this.#rules
    let text = given
    while (this.#stripLeft > 0 && text !== '') {
      if (!text.startsWith(strip)) this.#stripLeft = 0
      else {
        text = text.slice(strip.length)
        this.#stripLeft--
      }
    }
    return text
  }
}

/** As the library cleans up each piece of a WordPiece vocabulary. */
function withoutSpaces(text: string): string {
  return text
    .replace(/ ([.?!,])/g, '$1')
    .replaceAll(" ' ", "'")
    .replace(/ (n't|'m)/g, '$1')
    .replaceAll(' do not', " don't")
    .replace(/ ('s|'ve|'re)/g, '$1')
}

/** A replacement character that was written as such. */
function isReplacement(bytes: Buffer, length: number): boolean {
  return length === 3 && bytes[0] === 0xef && bytes[1] === 0xbf && bytes[2] === 0xbd
}

/**
 * Number of bytes at the end that begin an incomplete character.
 * @param length number of valid bytes in `bytes`
 */
export function unfinishedBytes(bytes: Uint8Array, length: number): number {
  const first = Math.max(0, length - 3)
  for (let at = length - 1; at >= first; at--) {
    const lead = bytes[at]
    if ((lead & 0xc0) === 0x80) continue
    const have = length - at
    return have < sequenceLength(lead) && mayContinue(lead, bytes, at, have) ? have : 0
  }
  return 0
}

function sequenceLength(lead: number): number {
  if (lead >= 0xc2 && lead <= 0xdf) return 2
  if (lead >= 0xe0 && lead <= 0xef) return 3
  if (lead >= 0xf0 && lead <= 0xf4) return 4
  return 1
}

/** No overlong forms, no surrogates, nothing above U+10FFFF. @source RFC 3629 section 4 */
function mayContinue(lead: number, bytes: Uint8Array, at: number, have: number): boolean {
  if (have < 2) return true
  const second = bytes[at + 1]
  if (lead === 0xe0) return second >= 0xa0
  if (lead === 0xed) return second <= 0x9f
  if (lead === 0xf0) return second >= 0x90
  if (lead === 0xf4) return second <= 0x8f
  return true
}

/** The decoder that other plugins get: ids to text, up to the first stop. */
export class StoppingDecoder implements TokenDecoder {
  readonly #decoder: IdDecoder
  readonly #search: StopSearch | null
  readonly #stopIds: ReadonlySet<number>
  readonly #includesStop: boolean
  matchedStop: string | number | null = null

  constructor(table: TokenTable, rules: DecoderRules, options: DecoderOptions = {}) {
    const { stops = [], stopIds = [], includeStop = false } = options
    this.#decoder = new IdDecoder(table, rules, options)
    this.#search = stops.some((stop) => stop !== '') ? new StopSearch(stops, includeStop) : null
    this.#stopIds = new Set(stopIds)
    this.#includesStop = includeStop
  }

  push(id: number): string {
    if (this.matchedStop !== null) return ''
    if (this.#stopIds.has(id)) return this.#stopAt(id)
    return this.#searched(this.#decoder.push(id))
  }

  end(): string {
    if (this.matchedStop !== null) return ''
    const text = this.#searched(this.#decoder.end())
    return this.matchedStop === null && this.#search !== null ? text + this.#search.end() : text
  }

  /** Flushes the held back text at a stop id, and the id itself if it is visible. */
  #stopAt(id: number): string {
    const text = this.#includesStop ? this.#searched(this.#decoder.push(id)) : ''
    const rest = this.end()
    this.matchedStop ??= id
    return text + rest
  }

  #searched(text: string): string {
    if (this.#search === null || text === '') return text
    const certain = this.#search.push(text)
    this.matchedStop = this.#search.matched
    return certain
  }
}
