/**
 * @hot
 * The bytes of every id of a vocabulary, in memory that all threads share: built once, read per token.
 */
import { isUtf8 } from 'node:buffer'
import { fromByteLetters } from './byte-letters.ts'
import type { DecoderRules } from './decoder-rules.ts'

/** Special token. */
const SPECIAL = 1
/** Added token, special or not. */
const ADDED = 2
/** One byte of a character without a piece of its own. */
const BYTE = 4
/** Whole characters, which need no neighbours to be decoded. */
const WHOLE = 8

const HEADER_BYTES = 8

export class TokenTable {
  readonly memory: SharedArrayBuffer
  /** One more than the highest id. */
  readonly size: number
  readonly #ends: Uint32Array
  readonly #flags: Uint8Array
  readonly #bytes: Buffer
  /** Text of ids that are whole characters, created on first use. */
  readonly #texts: (string | undefined)[] = []

  /** @param memory of `buildTokenTable`, from any thread */
  constructor(memory: SharedArrayBuffer) {
    const [size, total] = new Uint32Array(memory, 0, 2)
    this.memory = memory
    this.size = size
    this.#ends = new Uint32Array(memory, HEADER_BYTES, size)
    this.#flags = new Uint8Array(memory, HEADER_BYTES + 4 * size, size)
    this.#bytes = Buffer.from(memory, HEADER_BYTES + 5 * size, total)
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

  /** Whether a piece is made of these bytes. */
  equals(id: number, bytes: Uint8Array, start: number, end: number): boolean {
    const first = id === 0 ? 0 : this.#ends[id - 1]
    if (this.#ends[id] - first !== end - start) return false
    for (let at = start; at < end; at++) if (this.#bytes[first - start + at] !== bytes[at]) return false
    return true
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

const BYTE_PIECE = /^<0x([0-9A-Fa-f]{2})>$/

export interface AddedToken {
  readonly id: number
  readonly content: string
  readonly special: boolean
}

export interface TableParts {
  /** One more than the highest id. */
  readonly size: number
  /** Added tokens included; null for ids that stand for nothing. */
  piece(id: number): string | null
  readonly added: readonly AddedToken[]
  readonly rules: DecoderRules
}

/** Builds the table from pieces of text. */
export function buildTokenTable(parts: TableParts): TokenTable {
  const added = new Map(parts.added.map((token) => [token.id, token]))
  const pieces: Buffer[] = []
  const bytePieces = new Set<number>()
  for (let id = 0; id < parts.size; id++) {
    const piece = parts.piece(id) ?? ''
    const isByte = parts.rules.kind === 'fallback' && BYTE_PIECE.test(piece)
    if (isByte) bytePieces.add(id)
    pieces.push(isByte ? Buffer.from([Number.parseInt(piece.slice(3, 5), 16)]) : toBytes(piece, parts.rules))
  }
  return writeTokenTable({
    size: parts.size,
    added,
    bytesOf: (id) => pieces[id],
    isByte: (id) => bytePieces.has(id),
  })
}

export interface WrittenParts {
  readonly size: number
  readonly added: ReadonlyMap<number, AddedToken>
  /** Asked twice; the same each time. */
  bytesOf(id: number): Uint8Array
  isByte(id: number): boolean
}

/** A table of bytes that are known already. */
export function writeTokenTable({ size, added, bytesOf, isByte }: WrittenParts): TokenTable {
  let total = 0
  for (let id = 0; id < size; id++) total += bytesOf(id).length
  const memory = new SharedArrayBuffer(HEADER_BYTES + 5 * size + total)
  new Uint32Array(memory, 0, 2).set([size, total])
  const ends = new Uint32Array(memory, HEADER_BYTES, size)
  const flags = new Uint8Array(memory, HEADER_BYTES + 4 * size, size)
  const all = new Uint8Array(memory, HEADER_BYTES + 5 * size, total)
  let end = 0
  for (let id = 0; id < size; id++) {
    const bytes = bytesOf(id)
    const token = added.get(id)
    all.set(bytes, end)
    end += bytes.length
    ends[id] = end
    flags[id] =
      (token?.special === true ? SPECIAL : 0) |
      (token === undefined ? 0 : ADDED) |
      (isByte(id) ? BYTE : isUtf8(bytes) ? WHOLE : 0)
  }
  return new TokenTable(memory)
}

function toBytes(piece: string, rules: DecoderRules): Buffer {
  let text = piece
  for (const [pattern, replacement] of rules.replacements) text = text.replaceAll(pattern, replacement)
  return rules.kind === 'bytes' ? fromByteLetters(text) : Buffer.from(text)
}
