/** Reads labels, model cards and data-parallel ranks from what engines and cloud services report. */
import type { ModelCard, RuntimeType } from '#kernel'
import { httpWorkerErrors } from './errors.ts'
import { type Info, type Inquiry, modelEntries } from './inquiry.ts'

/** Words for what a model can do. @source routes facts 16.3 */
export type Capability =
  | 'chat'
  | 'completions'
  | 'responses'
  | 'embeddings'
  | 'rerank'
  | 'vision'
  | 'tools'
  | 'reasoning'
  | 'image_gen'
  | 'audio'
  | 'moderation'

/** What a language model can do when nobody says otherwise. */
export const DEFAULT_CAPABILITIES: readonly Capability[] = Object.freeze([
  'chat',
  'completions',
  'responses',
  'tools',
])

export interface Discovered {
  readonly labels: Readonly<Record<string, string>>
  readonly models: readonly ModelCard[]
}

/** Members of the engine's answers that become labels. @source routing facts 2.2 step 4 */
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
] as const

/** Every thread holds every label. */
const MAX_LABEL_LENGTH = 1_024

/** First that is set wins. @source routing facts 2.2 step 4 */
const CONTEXT_KEYS = [
  'context_length',
  'max_context_length',
  'max_model_len',
  'max_total_tokens',
  'max_seq_len',
]
const MODEL_ID_KEYS = ['served_model_name', 'model_id', 'model_path']

/**
 * Asks the engine and makes the worker's cards. What the engine does not answer is left out.
 *
 * @param given labels of the specification; they win over discovered ones
 * @param configured cards of the specification; null asks for cards, an empty list stays a wildcard
 */
export async function discover(
  inquiry: Inquiry,
  runtime: RuntimeType,
  given: Readonly<Record<string, string>>,
  configured: readonly ModelCard[] | null,
): Promise<Discovered> {
  // One after the other over one connection: with thousands of workers, connecting is what costs.
  const entries = modelEntries(await inquiry.find('/v1/models'))
  const infos: (Info | null)[] = []
  if (runtime === 'sglang') infos.push(await serverInfo(inquiry), await sglangInfo(inquiry, 'model_info'))
  if (runtime === 'vllm') infos.push(await inquiry.find('/version'))
  if (runtime === 'llamacpp') infos.push(asLabels(await inquiry.find('/props')))
  const labels = toLabels([...infos, asInfo(entries[0])])
  const all = { ...labels, ...given }
  if (configured !== null) return { labels, models: configured.map((card) => complete(card, all)) }
  return { labels, models: toCards(entries, all) }
}

/** What an sglang engine says about how it runs; null when it does not. */
export function serverInfo(inquiry: Inquiry): Promise<Info | null> {
  return sglangInfo(inquiry, 'server_info')
}

/** Older releases have the route under another name. */
async function sglangInfo(inquiry: Inquiry, name: string): Promise<Info | null> {
  return (await inquiry.find(`/${name}`)) ?? (await inquiry.find(`/get_${name}`))
}

/** What llama.cpp says of its one model, under the names that others use. The context is that of one slot. */
function asLabels(props: Info | null): Info | null {
  const settings = props?.default_generation_settings as Info | null | undefined
  return { model_path: props?.model_path, version: props?.build_info, context_length: settings?.n_ctx }
}

/** A model list entry under the names that the information routes use. */
function asInfo(entry: Info | undefined): Info | null {
  if (entry === undefined) return null
  return { served_model_name: entry.id, model_path: entry.root, max_model_len: entry.max_model_len }
}

/** The first value of each label, in order of the answers. */
function toLabels(infos: readonly (Info | null)[]): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const key of LABEL_KEYS) {
    const value = infos.map((info) => info?.[key]).find(isLabelValue)
    if (value !== undefined) labels[key] = String(value)
  }
  return labels
}

function isLabelValue(value: unknown): value is string | number | boolean {
  return (
    (typeof value === 'string' && value !== '' && value.length <= MAX_LABEL_LENGTH) ||
    typeof value === 'number' ||
    typeof value === 'boolean'
  )
}

/** The main model by its labels; the rest of the list too, when the main one is on it. */
function toCards(
  entries: readonly (Info & { id: string })[],
  labels: Readonly<Record<string, string>>,
): ModelCard[] {
  const mainId = MODEL_ID_KEYS.map((key) => labels[key]).find(Boolean)
  if (mainId === undefined) return []
  const main = complete({ id: mainId, model_type: [...capabilities(labels)] }, labels)
  const isListed = entries.some((entry) => entry.id === mainId)
  if (!isListed) return [main]
  return entries.map((entry) =>
    entry.id === mainId
      ? main
      : withoutGaps({
          id: entry.id,
          model_type: main.model_type,
          context_length: tokens(entry.max_model_len),
        }),
  )
}

/** Fills in what the card does not say and the labels do. */
function complete(card: ModelCard, labels: Readonly<Record<string, string>>): ModelCard {
  const contextLength = CONTEXT_KEYS.map((key) => tokens(labels[key])).find((length) => length !== undefined)
  const found = {
    context_length: contextLength,
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

function capabilities(labels: Readonly<Record<string, string>>): readonly Capability[] {
  const isEmbedding = labels.is_embedding === 'true' || labels.is_generation === 'false'
  if (isEmbedding) return ['embeddings']
  return [
    ...DEFAULT_CAPABILITIES,
    ...(labels.has_image_understanding === 'true' ? (['vision'] as const) : []),
    ...(labels.has_audio_understanding === 'true' ? (['audio'] as const) : []),
    ...(labels.reasoning_parser === undefined ? [] : (['reasoning'] as const)),
  ]
}

/** A positive whole number, also when written as text. */
function tokens(value: unknown): number | undefined {
  const count = Number(value ?? Number.NaN)
  return Number.isSafeInteger(count) && count > 0 ? count : undefined
}

const DATE_SUFFIX = /[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$/

/** Words in a model's name that tell what it is for; first match wins. */
const CAPABILITIES_OF_NAME: readonly (readonly [pattern: RegExp, capabilities: readonly Capability[]])[] = [
  [/embed/, ['embeddings']],
  [/rerank/, ['rerank']],
  [/moderation/, ['moderation']],
  [/dall-e|image|imagen/, ['image_gen']],
  [/whisper|tts|transcribe|audio|realtime/, ['audio']],
]

/**
 * @returns an empty list, which is a wildcard, when the service lists nothing
 * @throws model_discovery_failed when it cannot be asked
 */
export async function discoverExternal(inquiry: Inquiry): Promise<readonly ModelCard[]> {
  // Some services have the list beside /v1, or beside what they have in its place.
  const list = (await inquiry.require('/v1/models')) ?? (await inquiry.find('/models'))
  return groupDated(modelNames(list).map((name) => name.replace(/^models\//, '')))
}

/** Names in a list of the common form, or of gemini's own. */
function modelNames(list: Info | null): readonly string[] {
  if (!Array.isArray(list?.models)) return modelEntries(list).map((entry) => entry.id)
  const names = list.models.map((entry: Info | null) => entry?.name)
  return names.filter((name): name is string => typeof name === 'string' && name !== '')
}

/** One card per model: the shortest name is its id, the others are aliases. @source routing facts 2.3 */
export function groupDated(ids: readonly string[]): readonly ModelCard[] {
  const groups = Map.groupBy(new Set(ids), (id) => id.replace(DATE_SUFFIX, ''))
  return [...groups.values()].map((names) => {
    const [id, ...aliases] = names.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1))
    const model_type = [...capabilitiesOf(id)]
    return { id, model_type, ...(aliases.length > 0 && { aliases }) }
  })
}

function capabilitiesOf(id: string): readonly Capability[] {
  return CAPABILITIES_OF_NAME.find(([pattern]) => pattern.test(id))?.[1] ?? DEFAULT_CAPABILITIES
}

/** More than any engine has: a wrong number must not fill the table. */
const MAX_RANKS = 1_024

/**
 * @returns 1 for an engine without data parallelism, which stays one worker
 * @throws rank_discovery_failed, which fails the registration
 * @source routing facts 2.4
 */
export async function discoverRankCount(
  inquiry: Inquiry,
  url: string,
  runtime: RuntimeType,
): Promise<number> {
  if (runtime !== 'sglang') {
    throw httpWorkerErrors.rank_discovery_failed(url, `${runtime} engines have no route for it`)
  }
  const info = await serverInfo(inquiry)
  if (info === null) throw httpWorkerErrors.rank_discovery_failed(url, 'no answer of /server_info')
  const count = Number(info.dp_size ?? Number.NaN)
  if (!Number.isInteger(count) || count < 1 || count > MAX_RANKS) {
    throw httpWorkerErrors.rank_discovery_failed(url, `dp_size of /server_info is not from 1 to ${MAX_RANKS}`)
  }
  return count
}
