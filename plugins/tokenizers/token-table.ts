/**
 * @hot
 * The bytes of every id of a vocabulary, in memory that all threads share: built once, read per token.
 */
import { fromByteLetters } from './byte-letters.ts'
import type { DecoderRules } from './decoder-rules.ts'

/** Left out of the text where special tokens are. */
const SPECIAL = 1
/** Added to the vocabulary, special or not. */
const ADDED = 2
/** One byte of a character that the vocabulary has no piece for. */
const BYTE = 4
/** Whole characters: needs nothing of its neighbours. */
const WHOLE = 8

const HEADER_BYTES = 8
const BYTE_PIECE = /^<0x([0-9A-Fa-f]{2})>$/

export interface AddedToken {
  readonly id: number
  readonly content: string
  readonly special: boolean
}

export interface TableParts {
  /** One more than the highest id. */
  readonly size: number
  /** Null for ids that stand for nothing. */
  piece(id: number): string | null
  readonly added: readonly AddedToken[]
  readonly rules: DecoderRules
}

export class TokenTable {
  readonly memory: SharedArrayBuffer
  /** One more than the highest id. */
  readonly size: number
  readonly #ends: Uint32Array
  readonly #flags: Uint8Array
  readonly #bytes: Buffer
  /** Text of ids that stand for whole characters, made when first asked for. */
  readonly #texts: (string | undefined)[] = []

  /** @param memory as `TokenTable.build` made it, on whatever thread */
  constructor(memory: SharedArrayBuffer) {
    const [size, total] = new Uint32Array(memory, 0, 2)
    this.memory = memory
    this.size = size
    this.#ends = new Uint32Array(memory, HEADER_BYTES, size)
    this.#flags = new Uint8Array(memory, HEADER_BYTES + 4 * size, size)
    this.#bytes = Buffer.from(memory, HEADER_BYTES + 5 * size, total)
  }

  static build(parts: TableParts): TokenTable {
    const added = new Map(parts.added.map((token) => [token.id, token]))
    const pieces: Buffer[] = []
    const flags = new Uint8Array(parts.size)
    let total = 0
    for (let id = 0; id < parts.size; id++) {
      const token = added.get(id)
      const piece = token?.content ?? parts.piece(id) ?? ''
      const isByte = parts.rules.kind === 'fallback' && BYTE_PIECE.test(piece)
      const bytes = isByte
        ? Buffer.from([Number.parseInt(piece.slice(3, 5), 16)])
        : toBytes(piece, parts.rules)
      flags[id] =
        (token?.special === true ? SPECIAL : 0) |
        (token === undefined ? 0 : ADDED) |
        (isByte ? BYTE : 0) |
        (isWhole(bytes) && !isByte ? WHOLE : 0)
      pieces.push(bytes)
      total += bytes.length
    }
    const memory = new SharedArrayBuffer(HEADER_BYTES + 5 * parts.size + total)
    new Uint32Array(memory, 0, 2).set([parts.size, total])
    const ends = new Uint32Array(memory, HEADER_BYTES, parts.size)
    const all = Buffer.from(memory, HEADER_BYTES + 5 * parts.size, total)
    let end = 0
    for (const [id, bytes] of pieces.entries()) {
      bytes.copy(all, end)
      end += bytes.length
      ends[id] = end
    }
    new Uint8Array(memory, HEADER_BYTES + 4 * parts.size, parts.size).set(flags)
    return new TokenTable(memory)
  }

  has(id: number): boolean {
    return id >= 0 && id < this.size && Number.isInteger(id)
  }

  isSpecial(id: number): boolean {
    return (this.#flags[id] & SPECIAL) !== 0
  }

  isAdded(id: number): boolean {
    return (this.#flags[id] & ADDED) !== 0
  }

  isByte(id: number): boolean {
    return (this.#flags[id] & BYTE) !== 0
  }

  isWhole(id: number): boolean {
    return (this.#flags[id] & WHOLE) !== 0
  }

  /** A view; of ids that `has` knows. */
  bytes(id: number): Buffer {
    return this.#bytes.subarray(id === 0 ? 0 : this.#ends[id - 1], this.#ends[id])
  }

  /** Of ids for which `isWhole` is true. */
  text(id: number): string {
    const known = this.#texts[id]
    if (known !== undefined) return known
    const text = this.#bytes.toString('utf8', id === 0 ? 0 : this.#ends[id - 1], this.#ends[id])
    this.#texts[id] = text
    return text
  }
}

function toBytes(piece: string, rules: DecoderRules): Buffer {
  let text = piece
  for (const [pattern, replacement] of rules.replacements) text = text.replaceAll(pattern, replacement)
  return rules.kind === 'bytes' ? fromByteLetters(text) : Buffer.from(text)
}

function isWhole(bytes: Buffer): boolean {
  return Buffer.from(bytes.toString('utf8')).equals(bytes)
}
