/** Reads a `tokenizer.json` without the native library, where all of it is of kinds that are known here. */
import { fromByteLetters } from '../byte-letters.ts'
import { jsonMember, jsonMembers } from '../json-members.ts'
import type { MarkerToken } from '../segments.ts'
import { type AddedToken, type TokenTable, writeTokenTable } from '../token-table.ts'
import { type BpeMemory, BpeTables, NONE } from './bpe-tables.ts'
import { type BpeShape, ByteBpe, letterPiece } from './byte-bpe.ts'
import { toNfc } from './nfc.ts'
import { type ReadPieces, readMerges, readPieces } from './read-pieces.ts'
import { toSplitWords } from './split-words.ts'

/** Ids from which on the table would be larger than the vocabulary is worth. */
const MAX_IDS = 4_000_000
/** Ranks that `merge-word` can hold. */
const MAX_MERGES = 2 ** 22
const EMPTY = new Uint8Array(0)

type Members = ReturnType<typeof jsonMembers>

export interface ReadBpe {
  readonly memory: BpeMemory
  readonly shape: BpeShape
  /** On this thread. */
  readonly opened: ByteBpe
  readonly table: TokenTable
  readonly vocabSize: number
}

interface Model {
  readonly type?: unknown
  readonly dropout?: unknown
  readonly continuing_subword_prefix?: unknown
  readonly end_of_word_suffix?: unknown
  readonly ignore_merges?: unknown
}

type Normalizer = { readonly type?: string; readonly normalizers?: readonly unknown[] } | null | undefined

/** True if nothing changes a text before it is encoded. @param section `normalizer` of the file */
export function isPlainNormalizer(section: unknown): boolean {
  const normalizer = section as Normalizer
  return normalizer === null || (normalizer?.type === 'Sequence' && normalizer.normalizers?.length === 0)
}

/** Null for unsupported or broken vocabularies, for which the library reports the error. @param added `added_tokens` */
export function readBpe(file: Buffer, members: Members, added: readonly MarkerToken[]): ReadBpe | null {
  try {
    return readKnown(file, members, added)
  } catch {
    return null
  }
}

function readKnown(file: Buffer, members: Members, added: readonly MarkerToken[]): ReadBpe | null {
  const preTokenizer = jsonMember(file, members, 'pre_tokenizer')
  const normalizer = jsonMember(file, members, 'normalizer') as Normalizer
  const isNfc = normalizer?.type === 'NFC'
  const decoder = jsonMember(file, members, 'decoder') as { type?: string } | null
  const around = toAround(jsonMember(file, members, 'post_processor') ?? null)
  const model = members.get('model')
  if (
    toSplitWords(preTokenizer) === null ||
    !(isNfc || isPlainNormalizer(normalizer)) ||
    decoder?.type !== 'ByteLevel'
  )
    return null
  if (around === null || model === undefined || added.some(isSpaced)) return null
  const parts = jsonMembers(file, model[0])
  const settings = Object.fromEntries(
    [...parts]
      .filter(([name]) => name !== 'vocab' && name !== 'merges')
      .map(([name]) => [name, jsonMember(file, parts, name)]),
  ) as Model
  const [vocab, merges] = [parts.get('vocab'), parts.get('merges')]
  if (!isSimple(settings) || vocab === undefined || merges === undefined) return null
  const pieces = readPieces(file, vocab[0], vocab[1])
  if (pieces.ids.length === 0) return null
  const ignoresMerges = settings.ignore_merges === true
  return assemble(file, merges, pieces, added, { preTokenizer, isNfc, ignoresMerges, ...around })
}

function assemble(
  file: Buffer,
  merges: readonly [number, number],
  pieces: ReadPieces,
  added: readonly MarkerToken[],
  rules: Omit<BpeShape, 'texts'>,
): ReadBpe | null {
  const texts = new Map<string, number>()
  for (const place of pieces.texts)
    texts.set(Buffer.from(bytesAt(pieces, place)).toString(), pieces.ids[place])
  const table = tableOf(pieces, added, rules.isNfc)
  const mergeCount = countMerges(file, merges)
  if (table === null || mergeCount > MAX_MERGES) return null
  const tables = BpeTables.create(table, pieces.ids.length, mergeCount)
  for (const [place, id] of pieces.ids.entries()) if (!pieces.texts.has(place)) tables.addPiece(id)
  let rank = 0
  const isRead = readMerges(file, merges[0], merges[1], (bytes, middle, length) => {
    const left = tables.pieceOf(bytes, 0, middle)
    const right = tables.pieceOf(bytes, middle, length)
    const result = tables.pieceOf(bytes, 0, length)
    if (left === NONE || right === NONE || result === NONE) return false
    tables.addMerge(left, right, rank++, result)
    return true
  })
  if (!isRead) return null
  const pieceId = (content: string) => texts.get(content) ?? letterPiece(tables, content)
  if (!isNumbered(added, pieceId, pieces.ids.length)) return null
  const shape = { ...rules, texts: [...texts] }
  return {
    memory: tables.memory,
    shape,
    opened: new ByteBpe(tables.memory, shape, added),
    table,
    vocabSize: new Set([...pieces.ids, ...added.map(({ id }) => id)]).size,
  }
}

function tableOf(pieces: ReadPieces, added: readonly MarkerToken[], isNfc: boolean): TokenTable | null {
  const tokens = new Map(added.map((token) => [token.id, token]))
  let size = 0
  for (const id of pieces.ids) size = Math.max(size, id + 1)
  for (const { id } of added) size = Math.max(size, id + 1)
  if (size > MAX_IDS) return null
  const places = new Int32Array(size).fill(-1)
  for (const [place, id] of pieces.ids.entries()) places[id] = place
  // As the library decodes them: normalized, and in letters for bytes if all of them are such.
  const written = ({ content, normalized }: MarkerToken) =>
    isNfc && normalized === true ? toNfc(content) : content
  const contents = new Map(added.map((token) => [token.id, fromByteLetters(written(token))]))
  return writeTokenTable({
    size,
    added: tokens,
    bytesOf: (id) => contents.get(id) ?? (places[id] < 0 ? EMPTY : bytesAt(pieces, places[id])),
    isByte: () => false,
  })
}

function bytesAt({ bytes, ends }: ReadPieces, place: number): Uint8Array {
  return bytes.subarray(place === 0 ? 0 : ends[place - 1], ends[place])
}

/** Whether the library would give the added tokens the ids of the file: it renumbers unknown ones. */
function isNumbered(
  added: readonly AddedToken[],
  pieceId: (content: string) => number | null,
  pieceCount: number,
): boolean {
  const contents = new Set<string>()
  let next = pieceCount
  for (const { id, content } of added) {
    if (content === '' || contents.has(content)) return false
    const known = pieceId(content)
    if (id !== (known ?? next)) return false
    if (known === null) next++
    contents.add(content)
  }
  return true
}

function isSpaced({ lstrip, rstrip, single_word: isWord }: MarkerToken): boolean {
  return lstrip === true || rstrip === true || isWord === true
}

function isSimple({
  type,
  dropout,
  continuing_subword_prefix: prefix,
  end_of_word_suffix: suffix,
}: Model): boolean {
  return (type ?? 'BPE') === 'BPE' && !dropout && !prefix && !suffix
}

/** Upper limit of the number of merges, for the size of their table. */
function countMerges(file: Buffer, [start, end]: readonly [number, number]): number {
  let spaces = 0
  let quotes = 0
  for (let at = start; at < end; at++) {
    if (file[at] === 0x22) quotes++
    else if (file[at] === 0x20) spaces++
  }
  // Either one text a merge, with a space inside, or two.
  return file[file.indexOf(0x5b, start) + 1] === 0x5b || spaces * 2 < quotes ? quotes >> 2 : quotes >> 1
}

interface Processor {
  readonly type?: string
  readonly processors?: readonly unknown[]
  readonly single?: readonly {
    readonly SpecialToken?: { readonly id: string }
    readonly Sequence?: unknown
  }[]
  readonly special_tokens?: Readonly<Record<string, { readonly ids: readonly number[] }>>
}

/** Ids that a post-processor adds around a single text; null for unsupported kinds. */
function toAround(section: unknown): { before: readonly number[]; after: readonly number[] } | null {
  if (section === null) return { before: [], after: [] }
  const { type, processors = [], single = [], special_tokens: special = {} } = section as Processor
  if (type === 'ByteLevel') return { before: [], after: [] }
  if (type === 'Sequence') {
    const all = processors.map(toAround)
    if (all.some((one) => one === null)) return null
    // The later ones lie outside.
    return {
      before: all.toReversed().flatMap((one) => one?.before ?? []),
      after: all.flatMap((one) => one?.after ?? []),
    }
  }
  if (type !== 'TemplateProcessing') return null
  const place = single.findIndex((item) => item.Sequence !== undefined)
  const ids = (items: typeof single) =>
    items.flatMap((item) => special[item.SpecialToken?.id ?? '']?.ids ?? [])
  return place < 0 ? null : { before: ids(single.slice(0, place)), after: ids(single.slice(place + 1)) }
}
