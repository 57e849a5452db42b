/** Loads one tokenizer from its files. Runs on the loading thread: a large or hostile one takes seconds. */
import type { Tokenizer } from 'tokenizers'
import type { ContentFormat, SpecialTokens } from '#kernel'
import { isPlainNormalizer, readBpe } from './bpe/read-bpe.ts'
import { findMarkers } from './cached-encoder.ts'
import { ChatTemplates } from './chat-template.ts'
import { type DecoderRules, PLAIN_RULES, toDecoderRules } from './decoder-rules.ts'
import { jsonMember, jsonMembers } from './json-members.ts'
import { nativeModel, openNative, type VocabularyModel } from './open-tokenizer.ts'
import type { RenderLimits } from './render-budget.ts'
import type { MarkerToken } from './segments.ts'
import { findSource, readJson, readVocabulary, SourceError, type SourceFiles } from './source-files.ts'
import { readTemplates } from './template-files.ts'
import { readTiktoken } from './tiktoken-file.ts'
import type { TokenTable } from './token-table.ts'
import { buildTokenTable } from './token-table.ts'
import {
  type TokenizerDescription,
  type TokenizerImage,
  toShared,
  type VocabularyImage,
  writeJson,
} from './tokenizer-image.ts'

/** More ids than any vocabulary has; the table would be larger than they are worth. */
const MAX_IDS = 4_000_000
/** Characters of JSON. */
const MAX_RESPONSE_TEMPLATE = 65_536

const USUAL_BOS = ['<s>', '<|begin_of_text|>', '<bos>', '<|endoftext|>', '<|startoftext|>']
const USUAL_EOS = [
  '</s>',
  '<|im_end|>',
  '<|eot_id|>',
  '<|end_of_text|>',
  '<eos>',
  '<|endoftext|>',
  '<|return|>',
]

/** Source of a tokenizer. */
export interface TokenizerPlace {
  readonly source: string
  readonly chatTemplatePath?: string
  /** Folders that must contain its files; absent for any. */
  readonly roots?: readonly string[]
}

/** Properties of a loaded tokenizer that serving threads need. */
export interface TokenizerFacts {
  readonly vocabSize: number
  readonly special: SpecialTokens
  readonly eosIds: readonly number[]
  /** [name, text] */
  readonly templates: readonly (readonly [string, string])[]
  readonly contentFormat: ContentFormat
  /** [name of the template, report] */
  readonly reports: TokenizerDescription['reports']
  readonly responseTemplate: object | null
  /** Null where decoding is not supported; the table is empty then. */
  readonly rules: DecoderRules | null
  /** Of a `TokenTable`. */
  readonly table: SharedArrayBuffer
}

export interface LoadResult {
  readonly facts: TokenizerFacts
  /** For threads that encode. */
  readonly image: TokenizerImage
}

/** `workerData` of the thread. */
export interface LoaderThreadData {
  /** Of a vocabulary. */
  readonly maxFileBytes: number
  readonly rendering: RenderLimits
  /** Whether segments of prompts will be cached. */
  readonly usesSegments: boolean
}

type Json = Readonly<Record<string, unknown>>

/** @throws SourceError, or the error of the library */
export async function loadTokenizer(
  place: TokenizerPlace,
  { maxFileBytes, rendering, usesSegments }: LoaderThreadData,
): Promise<LoadResult> {
  const roots = place.roots ?? null
  const files = findSource(place.source, roots)
  const config = readJson(files, 'tokenizer_config.json')
  const { vocabulary, model, vocabSize, tableOf, declared, decoder, isPlain } = readModel(
    files,
    config,
    maxFileBytes,
  )
  // The library numbers added tokens itself where the file contradicts the vocabulary.
  const added = declared.map((token) => ({ ...token, id: model.tokenToId(token.content) ?? token.id }))
  const special = readSpecialTokens(files, config, added)
  const sources = readTemplates(files, config, place.chatTemplatePath, roots)
  const templates = new ChatTemplates(sources, special, { limits: rendering })
  templates.check()
  const eosId = special.eos === null ? null : model.tokenToId(special.eos)
  const rules = toDecoderRules(decoder)
  const encode = (text: string) => model.encode(text, false)
  const description: TokenizerDescription = {
    added,
    markers: usesSegments ? await findMarkers(encode, added, isPlain) : null,
    special,
    templates: [...sources],
    reports: [...templates.reports],
  }
  return {
    facts: {
      vocabSize,
      special,
      eosIds: readEosIds(files, eosId),
      templates: [...sources],
      contentFormat: templates.contentFormat,
      reports: description.reports,
      responseTemplate: responseTemplateOf(config),
      rules,
      table: tableOf(added, rules).memory,
    },
    image: {
      vocabulary,
      description: writeJson('chat templates and added tokens', description),
    },
  }
}

/** Limits the size only, since each thread has a copy; the parsers plugin validates it. */
function responseTemplateOf({ response_template: template }: Json): object | null {
  if (typeof template !== 'object' || template === null || Array.isArray(template)) return null
  return JSON.stringify(template).length > MAX_RESPONSE_TEMPLATE ? null : template
}

interface ReadModel {
  readonly vocabulary: VocabularyImage
  readonly model: VocabularyModel
  readonly vocabSize: number
  /** @param added with the ids that `tokenToId` gives */
  tableOf(added: readonly MarkerToken[], rules: TokenizerFacts['rules']): TokenTable
  /** Added tokens with the ids of the file. */
  readonly declared: readonly MarkerToken[]
  readonly decoder: unknown
  /** Nothing changes a text before it is encoded. */
  readonly isPlain: boolean
}

function readModel(files: SourceFiles, config: Json, maxFileBytes: number): ReadModel {
  let bytes = readVocabulary(files, maxFileBytes)
  if (files.kind === 'tiktoken') bytes = Buffer.from(readTiktoken(files.file, bytes, config))
  const members = jsonMembers(bytes)
  const declared = (jsonMember(bytes, members, 'added_tokens') ?? []) as MarkerToken[]
  if (!Array.isArray(declared)) throw new SourceError('added_tokens of tokenizer.json is not a list')
  const common = {
    declared,
    decoder: jsonMember(bytes, members, 'decoder') ?? null,
    isPlain: isPlainNormalizer(jsonMember(bytes, members, 'normalizer')),
  }
  const bpe = readBpe(bytes, members, declared)
  if (bpe !== null) {
    const { memory, shape, opened, table, vocabSize } = bpe
    const vocabulary: VocabularyImage = {
      kind: 'bpe',
      memory,
      shape: writeJson('rules and textual pieces of the vocabulary', shape),
    }
    return { ...common, vocabulary, model: opened, vocabSize, tableOf: () => table }
  }
  const file = toShared(bytes)
  const tokenizer = openNative(file)
  return {
    ...common,
    vocabulary: { kind: 'native', file },
    model: nativeModel(tokenizer, declared),
    vocabSize: tokenizer.getVocabSize(true),
    tableOf: (added, rules) => tableOf(tokenizer, added, rules),
  }
}

/** Ids may have gaps, so the highest one is searched. */
function tableOf(
  tokenizer: Tokenizer,
  added: readonly MarkerToken[],
  rules: TokenizerFacts['rules'],
): TokenTable {
  if (rules === null) return buildTokenTable({ size: 0, piece: () => null, added: [], rules: PLAIN_RULES })
  let size = tokenizer.getVocabSize(true)
  for (const { id } of added) size = Math.max(size, id + 1)
  let known = 0
  const wanted = tokenizer.getVocabSize(true)
  for (let id = 0; id < size; id++) if (tokenizer.idToToken(id) !== null) known++
  // With gaps, the remaining ids are higher.
  while (known < wanted && size < MAX_IDS) if (tokenizer.idToToken(size++) !== null) known++
  return buildTokenTable({ size, piece: (id) => tokenizer.idToToken(id), added, rules })
}

function readSpecialTokens(files: SourceFiles, config: Json, added: readonly MarkerToken[]): SpecialTokens {
  const map = readJson(files, 'special_tokens_map.json')
  const contents = new Set(added.map(({ content }) => content))
  const named = (key: string, usual: readonly string[]) => {
    if (key in config) return contentOf(config[key])
    return contentOf(map[key]) ?? usual.find((content) => contents.has(content)) ?? null
  }
  return {
    bos: named('bos_token', USUAL_BOS),
    eos: named('eos_token', USUAL_EOS),
    unk: named('unk_token', []),
    pad: named('pad_token', []),
    all: added.filter(({ special }) => special).map(({ content }) => content),
  }
}

/** Ids of the model's configuration, else of the eos token; ascending. */
function readEosIds(files: SourceFiles, eosId: number | null): number[] {
  const ids = new Set<number>()
  for (const name of ['config.json', 'generation_config.json']) {
    const { eos_token_id: found } = readJson(files, name)
    for (const id of Array.isArray(found) ? found : [found]) if (Number.isInteger(id)) ids.add(Number(id))
  }
  if (eosId !== null) ids.add(eosId)
  return [...ids].sort((a, b) => a - b)
}

/** A token is written as its text, or as an object that has it. */
function contentOf(value: unknown): string | null {
  if (typeof value === 'string') return value
  const { content } = (value ?? {}) as { content?: unknown }
  return typeof content === 'string' ? content : null
}
