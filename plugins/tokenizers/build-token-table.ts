/** Builds the table of a vocabulary's bytes, when it is loaded. */
import { fromByteLetters } from './byte-letters.ts'
import type { DecoderRules } from './decoder-rules.ts'
import { ADDED, BYTE, HEADER_BYTES, SPECIAL, TokenTable, WHOLE } from './token-table.ts'

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

/** Every piece once, and what is special about it. */
export function buildTokenTable(parts: TableParts): TokenTable {
  const added = new Map(parts.added.map((token) => [token.id, token]))
  const pieces: Buffer[] = []
  const flags = new Uint8Array(parts.size)
  let total = 0
  for (let id = 0; id < parts.size; id++) {
    const token = added.get(id)
    const piece = token?.content ?? parts.piece(id) ?? ''
    const isByte = parts.rules.kind === 'fallback' && BYTE_PIECE.test(piece)
    const bytes = isByte ? Buffer.from([Number.parseInt(piece.slice(3, 5), 16)]) : toBytes(piece, parts.rules)
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

function toBytes(piece: string, rules: DecoderRules): Buffer {
  let text = piece
  for (const [pattern, replacement] of rules.replacements) text = text.replaceAll(pattern, replacement)
  return rules.kind === 'bytes' ? fromByteLetters(text) : Buffer.from(text)
}

function isWhole(bytes: Buffer): boolean {
  return Buffer.from(bytes.toString('utf8')).equals(bytes)
}
