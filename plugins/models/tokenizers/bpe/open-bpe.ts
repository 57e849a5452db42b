/** Opens a vocabulary that `read-bpe` read, on any thread. */
import type { AddedToken } from '../build-token-table.ts'
import { byteOfLetter } from '../byte-letters.ts'
import type { MarkerToken } from '../segments.ts'
import { type BpeMemory, BpeTables, NONE } from './bpe-tables.ts'
import { ByteBpe, type MarkerStage } from './byte-bpe.ts'
import { MarkerIndex } from './marker-index.ts'
import { toSplitWords } from './split-words.ts'

/** Everything about a vocabulary that its tables do not contain. */
export interface BpeShape {
  /** `pre_tokenizer` of the file. */
  readonly preTokenizer: unknown
  readonly isNfc: boolean
  readonly ignoresMerges: boolean
  /** Ids around a text where special tokens are wanted. */
  readonly before: readonly number[]
  readonly after: readonly number[]
  /** [text, id] of pieces that are text and not letters for bytes. */
  readonly texts: readonly (readonly [string, number])[]
}

/** @param added tokens with their ids. @throws Error for rules that are not known, or when a byte has no piece */
export function openBpe(memory: BpeMemory, shape: BpeShape, added: readonly MarkerToken[]) {
  const { preTokenizer, isNfc, ignoresMerges, before, after, texts } = shape
  const split = toSplitWords(preTokenizer)
  if (split === null) throw new Error('the pre_tokenizer of the vocabulary is not supported')
  const tables = new BpeTables(memory)
  const encoder = new ByteBpe({
    tables,
    split,
    isNfc,
    ignoresMerges,
    raw: stageOf(added.filter(({ normalized }) => normalized !== true)),
    normalized: stageOf(
      added.filter(({ normalized }) => normalized === true),
      isNfc,
    ),
    before,
    after,
  })
  const ids = new Map([...texts, ...added.map(({ content, id }) => [content, id] as const)])
  return {
    encode: (text: string, addSpecialTokens: boolean) => encoder.encode(text, addSpecialTokens),
    encodePlain: (text: string) => encoder.encodePlain(text),
    tokenToId: (content: string) => ids.get(content) ?? letterPiece(tables, content),
  }
}

/** The id of a piece that is written in letters for bytes. */
export function letterPiece(tables: BpeTables, content: string): number | null {
  const bytes = Uint8Array.from(content, (letter) => Math.max(byteOfLetter(letter.charCodeAt(0)), 0))
  if ([...content].some((letter) => letter.length > 1 || byteOfLetter(letter.charCodeAt(0)) < 0)) return null
  const id = tables.pieceOf(bytes, 0, bytes.length)
  return id === NONE ? null : id
}

function stageOf(added: readonly AddedToken[], isNfc = false): MarkerStage {
  const written = (content: string) => (isNfc ? content.normalize('NFC') : content)
  return {
    index: new MarkerIndex(added.map(({ content }) => written(content))),
    ids: new Map(added.map(({ content, id }) => [written(content), id])),
  }
}
