/** Reads what a local engine says about itself: labels, and a card for each model it serves. */
import type { ModelCard, RuntimeType } from '#kernel'
import { type Capability, DEFAULT_CAPABILITIES } from './capabilities.ts'
import { type Info, type Inquiry, modelEntries } from './inquiry.ts'

export interface Discovered {
  readonly labels: Readonly<Record<string, string>>
  readonly models: readonly ModelCard[]
}

/** Members of the engine's answers that become labels. */
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

/** First that is set wins. */
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
