/**
 * Turns a tiktoken vocabulary (one line a piece: base64 and rank) into a `tokenizer.json`, so that one library encodes
 * both kinds.
 */
import { basename } from 'node:path'
import { toByteLetters } from './byte-letters.ts'
import { SourceError } from './source-files.ts'
import type { AddedToken } from './token-table.ts'

const CL100K =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const QWEN = CL100K.replace('\\p{N}{1,3}', '\\p{N}')
const O200K = [
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  '\\p{N}{1,3}',
  ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*',
  '\\s*[\\r\\n]+',
  '\\s+(?!\\S)',
  '\\s+',
].join('|')
/** Words of Han letters stand by themselves. */
const HAN = [
  '[\\p{Han}]+',
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  '\\p{N}{1,3}',
  ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*',
  '\\s*[\\r\\n]+',
  '\\s+(?!\\S)',
  '\\s+',
].join('|')
const R50K = "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/** The split pattern and the control tokens, which the file does not contain. */
interface Encoding {
  readonly pattern: string
  readonly special: Readonly<Record<string, number>>
}

/** As engines number them. */
const HARMONY: Readonly<Record<string, number>> = {
  '<|startoftext|>': 199_998,
  '<|endoftext|>': 199_999,
  '<|return|>': 200_002,
  '<|constrain|>': 200_003,
  '<|channel|>': 200_005,
  '<|start|>': 200_006,
  '<|end|>': 200_007,
  '<|message|>': 200_008,
  '<|call|>': 200_012,
  '<|endofprompt|>': 200_018,
}

const ENCODINGS: readonly (readonly [file: RegExp, encoding: Encoding])[] = [
  [/^o200k_harmony/, { pattern: O200K, special: HARMONY }],
  [/^o200k_base/, { pattern: O200K, special: { '<|endoftext|>': 199_999, '<|endofprompt|>': 200_018 } }],
  [
    /^cl100k_base/,
    {
      pattern: CL100K,
      special: {
        '<|endoftext|>': 100_257,
        '<|fim_prefix|>': 100_258,
        '<|fim_middle|>': 100_259,
        '<|fim_suffix|>': 100_260,
        '<|endofprompt|>': 100_276,
      },
    },
  ],
  [/^(p50k|r50k)_base/, { pattern: R50K, special: { '<|endoftext|>': 50_256 } }],
  [/^qwen/, { pattern: QWEN, special: {} }],
]

/** Special ids that such models keep after their pieces. */
const HAN_RESERVED = 256

/**
 * @param config `tokenizer_config.json` beside it, for special tokens (`added_tokens_decoder`) and the kind
 * @returns the text of a `tokenizer.json`
 * @throws SourceError naming the line at fault
 */
export function readTiktoken(file: string, bytes: Buffer, config: Readonly<Record<string, unknown>>): string {
  const pieces = readPieces(bytes)
  const known = ENCODINGS.find(([name]) => name.test(basename(file)))?.[1]
  const isHan = known === undefined && config.tokenizer_class === 'TikTokenTokenizer'
  const pattern = known?.pattern ?? (isHan ? HAN : CL100K)
  const added = addedTokens(config, known, isHan ? pieces.size : null)
  const vocab: Record<string, number> = Object.create(null)
  for (const { letters, rank } of pieces.values()) vocab[letters] = rank
  // Ids of added tokens are those that the model knows; others would be numbered anew.
  for (const { id, content } of added) vocab[content] = id
  return JSON.stringify({
    version: '1.0',
    added_tokens: added.map((token) => ({
      ...token,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
    model: { type: 'BPE', ignore_merges: true, vocab, merges: mergesOf(pieces) },
  })
}

interface Piece {
  readonly rank: number
  /** As a `tokenizer.json` writes its bytes. */
  readonly letters: string
}

/** By bytes as latin1 text. */
function readPieces(bytes: Buffer): Map<string, Piece> {
  const pieces = new Map<string, Piece>()
  let line = 0
  for (const row of bytes.toString('latin1').split('\n')) {
    line++
    if (row === '' || row === '\r') continue
    const space = row.indexOf(' ')
    const rank = Number(row.slice(space + 1))
    const piece = Buffer.from(space < 0 ? '' : row.slice(0, space), 'base64')
    if (piece.length === 0 || !Number.isInteger(rank) || rank < 0 || rank > 0xff_ffff)
      throw new SourceError(`line ${line} of the tiktoken file is not a piece and its rank`)
    pieces.set(piece.toString('latin1'), { rank, letters: toByteLetters(piece) })
  }
  if (pieces.size === 0) throw new SourceError('the tiktoken file is empty')
  return pieces
}

/**
 * Which pairs make up a piece, the pair that is merged last. tiktoken merges by the rank of the result, so for every
 * way to cut a piece in two known pieces there is a merge; pairs of lower ranks go first.
 */
function mergesOf(pieces: ReadonlyMap<string, Piece>): string[][] {
  const merges: string[][] = []
  const inOrder = [...pieces].sort(([, a], [, b]) => a.rank - b.rank)
  for (const [piece] of inOrder) {
    const cuts: (readonly [left: Piece, right: Piece])[] = []
    for (let at = 1; at < piece.length; at++) {
      const left = pieces.get(piece.slice(0, at))
      // Most pieces have few known beginnings.
      const right = left && pieces.get(piece.slice(at))
      if (right !== undefined) cuts.push([left as Piece, right])
    }
    cuts.sort(([a, b], [c, d]) => a.rank - c.rank || b.rank - d.rank)
    for (const [left, right] of cuts) merges.push([left.letters, right.letters])
  }
  return merges
}

function addedTokens(
  config: Readonly<Record<string, unknown>>,
  known: Encoding | undefined,
  firstReserved: number | null,
): AddedToken[] {
  const added = new Map<number, AddedToken>()
  for (const [content, id] of Object.entries(known?.special ?? {}))
    added.set(id, { id, content, special: true })
  if (firstReserved !== null) {
    for (let id = firstReserved; id < firstReserved + HAN_RESERVED; id++)
      added.set(id, { id, content: `<|reserved_token_${id}|>`, special: true })
  }
  const declared = config.added_tokens_decoder
  for (const [key, token] of Object.entries(
    typeof declared === 'object' && declared !== null ? declared : {},
  )) {
    const { content, special } = token as { content?: unknown; special?: unknown }
    const id = Number(key)
    if (typeof content !== 'string' || !Number.isInteger(id)) continue
    added.set(id, { id, content, special: special === true })
  }
  return [...added.values()].sort((a, b) => a.id - b.id)
}
