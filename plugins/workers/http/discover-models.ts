/** Reads labels and model cards from what engines and cloud services report. */
import type { ModelCard } from '#kernel'
import { contextLengthOf, DEFAULT_CAPABILITIES, isEmbeddingModel, modelIdOf, positiveCount } from '#shared'
import type { Engine } from './engines/engine.ts'
import { type Info, listedContextLength, listedModels, type WorkerQueries } from './worker-queries.ts'

export interface Discovered {
  readonly labels: Readonly<Record<string, string>>
  readonly models: readonly ModelCard[]
}

/** Members of engine responses that become labels. */
const LABEL_KEYS = [
  'served_model_name',
  'model_id',
  'model_path',
  'tokenizer_path',
  'version',
  'tp_size',
  'dp_size',
  'load_balance_method',
  'disaggregation_mode',
  'max_running_requests',
  'context_length',
  'max_context_length',
  'max_model_len',
  'max_total_tokens',
  'max_seq_len',
  'is_generation',
  'is_embedding',
  'has_image_understanding',
  'has_audio_understanding',
  'reasoning_parser',
  'tool_call_parser',
  'supports_tools',
] as const

/** Every thread holds every label. */
const MAX_LABEL_LENGTH = 1_024

/**
 * Queries the engine for labels and model cards. Omits what the engine does not report.
 *
 * @param apis API formats that it serves
 * @param given labels of the specification, which have precedence over discovered ones
 * @param configured cards of the specification; null discovers cards, an empty list is a wildcard
 */
export async function discover(
  queries: WorkerQueries,
  { engine, apis }: { readonly engine: Engine; readonly apis: readonly string[] },
  given: Readonly<Record<string, string>>,
  configured: readonly ModelCard[] | null,
): Promise<Discovered> {
  // Sequentially over one connection, since connecting dominates the cost with thousands of workers.
  const entries = listedModels(await queries.find('/v1/models'))
  const infos = (await engine.info?.(queries)) ?? []
  const generates = apis.includes('chat') || apis.includes('completions')
  const found = generates ? null : { is_embedding: true }
  const labels = toLabels([...infos, asInfo(entries[0]), found])
  const all = { ...labels, ...given }
  if (configured !== null) return { labels, models: configured.map((card) => complete(card, all)) }
  return { labels, models: toCards(entries, all) }
}

/** A model list entry under the names of the information routes. */
function asInfo(entry: Info | undefined): Info | null {
  if (entry === undefined) return null
  return { served_model_name: entry.id, model_path: entry.root, max_model_len: listedContextLength(entry) }
}

/** The first value of each label, in order of the responses. */
function toLabels(infos: readonly (Info | null)[]): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const key of LABEL_KEYS) {
    const value = infos.map((info) => info?.[key]).find(isLabelValue)
    if (value !== undefined) labels[key] = String(value)
  }
  return labels
}

function isLabelValue(value: unknown): value is string | number | boolean {
  return isName(value) || typeof value === 'number' || typeof value === 'boolean'
}

/** The main model by its labels, and the rest of the list if it includes the main model. */
function toCards(
  entries: readonly (Info & { id: string })[],
  labels: Readonly<Record<string, string>>,
): ModelCard[] {
  const mainId = modelIdOf(labels)
  if (mainId === undefined) return []
  const kinds = [...capabilities(labels)]
  const listed = entries.find((entry) => entry.id === mainId)
  const main = complete({ id: mainId, model_type: kinds, ...listedFacts(listed) }, labels)
  if (listed === undefined) return [main]
  return entries.map((entry) =>
    entry === listed
      ? main
      : withoutGaps({
          id: entry.id,
          model_type: kinds,
          context_length: listedContextLength(entry),
          ...listedFacts(entry),
        }),
  )
}

const MAX_ALIASES = 64
/** Capabilities by the words of model lists (Infinity). */
const CAPABILITY_OF_WORD: ReadonlyMap<unknown, string> = new Map([
  ['embed', 'embeddings'],
  ['rerank', 'rerank'],
])

/** What an entry of a model list says of its model beside the context length. */
function listedFacts({ id, created, aliases, capabilities: words }: Info = {}): Partial<ModelCard> {
  const others = Array.isArray(aliases) ? aliases.filter((name) => name !== id && isName(name)) : []
  const kinds = Array.isArray(words) ? words.flatMap((word) => CAPABILITY_OF_WORD.get(word) ?? []) : []
  return {
    ...(positiveCount(created) !== undefined && { created }),
    ...(others.length > 0 && { aliases: others.slice(0, MAX_ALIASES) }),
    ...(kinds.length > 0 && { model_type: kinds }),
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_LABEL_LENGTH
}

/** Fills gaps of a card from the labels. */
function complete(card: ModelCard, labels: Readonly<Record<string, string>>): ModelCard {
  const found = {
    context_length: contextLengthOf(labels),
    tokenizer_path: labels.tokenizer_path,
    reasoning_parser: labels.reasoning_parser,
    tool_parser: labels.tool_call_parser,
  }
  return withoutGaps({ ...found, ...card })
}

function withoutGaps(card: { readonly id: string } & Info): ModelCard {
  const members = Object.entries(card).filter(([, value]) => value !== undefined)
  return { ...Object.fromEntries(members), id: card.id }
}

function capabilities(labels: Readonly<Record<string, string>>): readonly string[] {
  if (isEmbeddingModel(labels)) return ['embeddings']
  return [
    ...DEFAULT_CAPABILITIES,
    ...(labels.has_image_understanding === 'true' ? ['vision'] : []),
    ...(labels.has_audio_understanding === 'true' ? ['audio'] : []),
    ...(labels.reasoning_parser === undefined ? [] : ['reasoning']),
  ]
}

const DATE_SUFFIX = /[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$/

/** Capabilities by model name; the first match wins. */
const CAPABILITIES_OF_NAME: readonly (readonly [pattern: RegExp, capabilities: readonly string[]])[] = [
  [/embed/, ['embeddings']],
  [/rerank/, ['rerank']],
  [/moderation/, ['moderation']],
  [/dall-e|image|imagen/, ['image_gen']],
  [/whisper|tts|transcribe|audio|realtime/, ['audio']],
]

/**
 * The models of a cloud service, with dated names of one model grouped into one card.
 *
 * @returns an empty list, which is a wildcard, if the service lists nothing
 * @throws model_discovery_failed if the query fails
 */
export async function discoverExternal(queries: WorkerQueries): Promise<readonly ModelCard[]> {
  // Some services have the list outside of /v1.
  const list = (await queries.require('/v1/models')) ?? (await queries.find('/models'))
  return groupDated(modelNames(list).map((name) => name.replace(/^models\//, '')))
}

/** Names of a list in the OpenAI or the Gemini format. */
function modelNames(list: Info | null): readonly string[] {
  if (!Array.isArray(list?.models)) return listedModels(list).map((entry) => entry.id)
  const names = list.models.map((entry: Info | null) => entry?.name)
  return names.filter((name): name is string => typeof name === 'string' && name !== '')
}

/** One card per model: the shortest name is its id, the others are aliases. */
export function groupDated(ids: readonly string[]): readonly ModelCard[] {
  const groups = Map.groupBy(new Set(ids), (id) => id.replace(DATE_SUFFIX, ''))
  return [...groups.values()].map((names) => {
    const [id, ...aliases] = names.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1))
    const model_type = [...capabilitiesOf(id)]
    return { id, model_type, ...(aliases.length > 0 && { aliases }) }
  })
}

function capabilitiesOf(id: string): readonly string[] {
  return CAPABILITIES_OF_NAME.find(([pattern]) => pattern.test(id))?.[1] ?? DEFAULT_CAPABILITIES
}
