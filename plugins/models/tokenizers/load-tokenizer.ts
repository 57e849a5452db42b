/** Loads one tokenizer from its files. Runs on threads of the pool: reading a vocabulary takes up to seconds. */
import { createRequire } from 'node:module'
import type { Tokenizer } from 'tokenizers'
import type { PromptPiece } from '#kernel'
import { type OpenBpe, openBpe } from './bpe/open-bpe.ts'
import { buildTokenTable } from './build-token-table.ts'
import { CachedEncoder, joined } from './cached-encoder.ts'
import { ChatTemplates } from './chat-template.ts'
import { toDecoderRules } from './decoder-rules.ts'
import type { EncoderThreadData, TokenizerFacts, TokenizerPlace } from './encoder-task.ts'
import { jsonMember, jsonMembers } from './json-members.ts'
import { type MarkerToken, Segmenter, withoutMarkers } from './segments.ts'
import { findSource, readJson, readVocabulary, SourceError, type SourceFiles } from './source-files.ts'
import { readEosIds, readSpecialTokens } from './special-tokens.ts'
import { readTemplates } from './template-files.ts'
import { readTiktoken } from './tiktoken-file.ts'
import type { TokenTable } from './token-table.ts'

/** More ids than any vocabulary has; the table would be larger than they are worth. */
const MAX_IDS = 4_000_000
/** Characters of JSON. */
const MAX_RESPONSE_TEMPLATE = 65_536

type Json = Readonly<Record<string, unknown>>

export interface OpenTokenizer {
  readonly facts: TokenizerFacts
  readonly templates: ChatTemplates
  readonly encoder: CachedEncoder
  /** Encodes with the tokens that the tokenizer adds around a text. */
  encodeSpecial(text: string): Promise<Uint32Array>
  /** Special tokens are those that are given as such. @throws Error naming a token that the vocabulary lacks */
  encodePieces(pieces: readonly PromptPiece[]): Promise<Uint32Array>
}

const require = createRequire(import.meta.url)

/** @throws SourceError, or the error of the library */
export async function loadTokenizer(
  place: TokenizerPlace,
  { maxFileBytes, rendering, promptCache, segmentCache }: EncoderThreadData,
): Promise<OpenTokenizer> {
  const roots = place.roots ?? null
  const files = findSource(place.source, roots)
  const config = readJson(files, 'tokenizer_config.json')
  const { model, added: declared, decoder, isPlain } = readModel(files, config, maxFileBytes)
  // The library numbers added tokens itself where the file contradicts the vocabulary.
  const added = declared.map((token) => ({ ...token, id: model.tokenToId(token.content) ?? token.id }))
  const special = readSpecialTokens(files, config, added)
  const sources = readTemplates(files, config, place.chatTemplatePath, roots)
  const templates = new ChatTemplates(sources, special, { limits: rendering })
  templates.check()
  const eosId = special.eos === null ? null : model.tokenToId(special.eos)
  const rules = toDecoderRules(decoder)
  return {
    facts: {
      vocabSize: model.vocabSize,
      special,
      eosIds: readEosIds(files, eosId),
      templates: [...sources],
      contentFormat: templates.contentFormat,
      responseTemplate: responseTemplateOf(config),
      rules,
      table: model.tableOf(added, rules).memory,
    },
    templates,
    encoder: await CachedEncoder.open((text) => model.encode(text, false), new Segmenter(added, isPlain), {
      promptCache,
      segmentCache,
    }),
    encodeSpecial: async (text) => model.encode(text, true),
    encodePieces: (pieces) => encodePieces(pieces, model),
  }
}

/** Whoever reads it checks it; here it must only be small enough to have on every thread. */
function responseTemplateOf({ response_template: template }: Json): object | null {
  if (typeof template !== 'object' || template === null || Array.isArray(template)) return null
  return JSON.stringify(template).length > MAX_RESPONSE_TEMPLATE ? null : template
}

/** A vocabulary, encoded by the gateway or by the library. */
interface Model {
  readonly vocabSize: number
  encode(text: string, addSpecialTokens: boolean): Uint32Array | Promise<Uint32Array>
  /** Added tokens in the text are letters like all others. */
  encodePlain(text: string): Uint32Array | Promise<Uint32Array>
  tokenToId(content: string): number | null
  /** @param added with the ids that `tokenToId` gives */
  tableOf(added: readonly MarkerToken[], rules: TokenizerFacts['rules']): TokenTable
}

interface ReadModel {
  readonly model: Model
  readonly added: readonly MarkerToken[]
  readonly decoder: unknown
  /** Nothing changes a text before it is encoded. */
  readonly isPlain: boolean
}

function readModel(files: SourceFiles, config: Json, maxFileBytes: number): ReadModel {
  let bytes = readVocabulary(files, maxFileBytes)
  if (files.kind === 'tiktoken') {
    const { json } = readTiktoken(files.file, bytes, config)
    bytes = Buffer.from(json)
  }
  const members = jsonMembers(bytes)
  const added = (jsonMember(bytes, members, 'added_tokens') ?? []) as MarkerToken[]
  if (!Array.isArray(added)) throw new SourceError('added_tokens of tokenizer.json is not a list')
  const normalizer = jsonMember(bytes, members, 'normalizer') as {
    type?: string
    normalizers?: unknown[]
  } | null
  const isPlain =
    normalizer === null || (normalizer?.type === 'Sequence' && normalizer.normalizers?.length === 0)
  const decoder = jsonMember(bytes, members, 'decoder') ?? null
  const own = openBpe(bytes, members, added)
  return { model: own === null ? nativeModel(bytes, added) : ownModel(own), added, decoder, isPlain }
}

function ownModel({ encoder, table, vocabSize, tokenToId }: OpenBpe): Model {
  return {
    vocabSize,
    encode: (text, addSpecialTokens) => encoder.encode(text, addSpecialTokens),
    encodePlain: (text) => encoder.encodePlain(text),
    tokenToId,
    tableOf: () => table,
  }
}

/** By the native library: kinds of vocabularies that are not known here. */
function nativeModel(bytes: Buffer, added: readonly MarkerToken[]): Model {
  // Loaded here: threads that never meet such a tokenizer do without it.
  const { Tokenizer } = require('tokenizers') as typeof import('tokenizers')
  const tokenizer = Tokenizer.fromString(bytes.toString())
  tokenizer.disableTruncation()
  tokenizer.disablePadding()
  const encode = async (text: string, addSpecialTokens: boolean) => {
    // The library takes UTF-8: halves of a surrogate pair become the replacement character, as everywhere.
    const encoding = await tokenizer.encode(text.toWellFormed(), null, { addSpecialTokens })
    return Uint32Array.from(encoding.getIds())
  }
  return {
    vocabSize: tokenizer.getVocabSize(true),
    encode,
    // The library looks for added tokens always: each is cut behind its first letter.
    encodePlain: async (text) =>
      joined(await Promise.all(withoutMarkers(text, added).map((part) => encode(part, false)))),
    tokenToId: (content) => tokenizer.tokenToId(content),
    tableOf: (added, rules) => tableOf(tokenizer, added, rules),
  }
}

async function encodePieces(pieces: readonly PromptPiece[], model: Model): Promise<Uint32Array> {
  return joined(
    await Promise.all(
      pieces.map(({ text, isToken }) => {
        if (!isToken) return model.encodePlain(text)
        const id = model.tokenToId(text)
        if (id === null) throw new Error(`the vocabulary has no token ${text}`)
        return Uint32Array.of(id)
      }),
    ),
  )
}

/** Ids need not be dense: the highest is looked for. */
function tableOf(
  tokenizer: Tokenizer,
  added: readonly MarkerToken[],
  rules: TokenizerFacts['rules'],
): TokenTable {
  if (rules === null) return buildTokenTable({ size: 0, piece: () => null, added: [], rules: NO_RULES })
  let size = tokenizer.getVocabSize(true)
  for (const { id } of added) size = Math.max(size, id + 1)
  let known = 0
  const wanted = tokenizer.getVocabSize(true)
  for (let id = 0; id < size; id++) if (tokenizer.idToToken(id) !== null) known++
  // Gaps: what is missing lies further up.
  while (known < wanted && size < MAX_IDS) if (tokenizer.idToToken(size++) !== null) known++
  return buildTokenTable({ size, piece: (id) => tokenizer.idToToken(id), added, rules })
}

const NO_RULES = {
  kind: 'fallback',
  replacements: [],
  stripCount: 0,
  strip: '',
  firstDropsSpaces: false,
} as const
