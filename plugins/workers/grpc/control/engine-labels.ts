/** Converts model and server information of an engine to labels and model cards. */
import type { ModelCard } from '#kernel'
import { contextLengthOf, DEFAULT_CAPABILITIES, isEmbeddingModel, modelIdOf } from '#shared'
import { toSnake } from '../runtimes/common-messages.ts'

type Info = Readonly<Record<string, unknown>>

/** Every thread holds every label. */
const MAX_LABEL_LENGTH = 8_192

/** Launch arguments that become labels. */
const ARGUMENTS: ReadonlySet<string> = new Set([
  'model',
  'model_path',
  'served_model_name',
  'tokenizer',
  'tokenizer_path',
  'tp_size',
  'dp_size',
  'pp_size',
  'context_length',
  'max_total_tokens',
  'max_running_requests',
  'load_balance_method',
  'disaggregation_mode',
  'is_embedding',
  'vocab_size',
  'weight_version',
  'tool_call_parser',
  'reasoning_parser',
])

const RENAMED: ReadonlyMap<string, string> = new Map([
  ['tensor_parallel_size', 'tp_size'],
  ['pipeline_parallel_size', 'pp_size'],
  ['context_parallel_size', 'cp_size'],
  ['data_parallel_size', 'dp_size'],
  ['sglang_version', 'version'],
  ['tokenspeed_version', 'version'],
  ['tokenizer', 'tokenizer_path'],
  ['model', 'model_path'],
])

/** Volatile or meaningless members. */
const DROPPED: ReadonlySet<string> = new Set([
  'active_requests',
  'is_paused',
  'last_receive_timestamp',
  'uptime_seconds',
  'server_type',
  'start_time',
  'server_args',
  'scheduler_info',
])

const RERANK = /rerank|crossencoder/i

/** Skips empty strings, zeros and nulls. */
export function toLabels(model: object | null, server: object | null): Record<string, string> {
  const labels = new Map<string, string>()
  const { serverArgs, schedulerInfo } = (server ?? {}) as { serverArgs?: Info; schedulerInfo?: Info }
  for (const [name, value] of Object.entries(serverArgs ?? {})) {
    if (ARGUMENTS.has(name)) add(labels, name, value)
  }
  add(labels, 'shm_namespace_id', schedulerInfo?.shm_namespace_id)
  for (const info of [server, model]) {
    for (const [name, value] of Object.entries(info ?? {})) add(labels, toSnake(name), value)
  }
  return Object.fromEntries(labels)
}

function add(labels: Map<string, string>, given: string, value: unknown): void {
  const name = RENAMED.get(given) ?? given
  if (DROPPED.has(name)) return
  const text = toText(value)
  if (text !== '' && text.length <= MAX_LABEL_LENGTH) labels.set(name, text)
}

function toText(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return value === 0 || !Number.isFinite(value) ? '' : String(value)
  if (typeof value === 'bigint') return value === 0n ? '' : String(value)
  return Array.isArray(value) && value.length > 0 ? JSON.stringify(value) : ''
}

/**
 * Model cards of a worker: those of its registration, completed from the labels; else one by its model label.
 * @param labels including those of the registration
 */
export function toCards(
  given: readonly ModelCard[] | null,
  labels: Readonly<Record<string, string>>,
): readonly ModelCard[] {
  if (given !== null) return given.map((card) => completeCard(card, labels))
  const id = modelIdOf(labels)
  return id === undefined ? [] : [completeCard({ id }, labels)]
}

function completeCard(card: ModelCard, labels: Readonly<Record<string, string>>): ModelCard {
  const context = contextLengthOf(labels)
  const words = kindOf(labels)
  return {
    ...(words !== null && { model_type: words }),
    ...(context !== undefined && { context_length: context }),
    ...card,
  }
}

/** Null for a language model. */
function kindOf(labels: Readonly<Record<string, string>>): readonly string[] | null {
  if (!isEmbeddingModel(labels))
    return labels.supports_vision === 'true' ? [...DEFAULT_CAPABILITIES, 'vision'] : null
  return RERANK.test(`${labels.architectures ?? ''} ${labels.model_type ?? ''}`) ? ['rerank'] : ['embeddings']
}
