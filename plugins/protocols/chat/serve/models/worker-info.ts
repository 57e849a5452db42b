/** Public info of a worker about its model and itself; the documented fields are always present. */
import type { JsonObject, WorkerEntry } from '#kernel'

/** Members that are public. Engines report all of their settings, keys included. */
const SHOWN: ReadonlySet<string> = new Set([
  'architectures',
  'attention_backend',
  'backend',
  'chunked_prefill_size',
  'context_length',
  'disaggregation_mode',
  'dp_size',
  'dtype',
  'ep_size',
  'gpu_count',
  'has_audio_understanding',
  'has_image_understanding',
  'is_embedding',
  'is_generation',
  'kv_cache_dtype',
  'load_balance_method',
  'max_context_length',
  'max_model_len',
  'max_num_seqs',
  'max_prefill_tokens',
  'max_req_input_len',
  'max_running_requests',
  'max_seq_len',
  'max_tokens',
  'max_total_num_tokens',
  'max_total_tokens',
  'model_id',
  'model_name',
  'model_path',
  'model_type',
  'page_size',
  'pp_size',
  'preferred_sampling_params',
  'quantization',
  'reasoning_parser',
  'sampling_backend',
  'schedule_policy',
  'served_model_name',
  'sglang_version',
  'status',
  'tokenizer_path',
  'tool_call_parser',
  'tp_size',
  'trtllm_version',
  'version',
  'vllm_version',
  'vocab_size',
  'weight_version',
])

/** Scalars and lists of them only: nested objects may hold anything. */
function shown(info: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(info).filter(([name, value]) => SHOWN.has(name) && isPlain(value)))
}

function isPlain(value: unknown): boolean {
  return Array.isArray(value) ? value.every(isScalar) : isScalar(value)
}

function isScalar(value: unknown): boolean {
  return value === null || typeof value !== 'object'
}

/** The public members, with model_name, max_tokens and vocab_size always present. */
export function withModelInfo(info: JsonObject, worker: WorkerEntry): JsonObject {
  const card = worker.models[0]
  return {
    ...shown(info),
    model_name:
      firstText(info.model_name, info.served_model_name, info.model_path, info.model_id, card?.id) ??
      'unknown',
    max_tokens:
      firstCount(info.max_tokens, info.context_length, info.max_model_len, card?.context_length) ?? 0,
    vocab_size: firstCount(info.vocab_size, card?.vocab_size) ?? 0,
  }
}

/** The public members, with version, backend and gpu_count always present. */
export function withServerInfo(info: JsonObject, worker: WorkerEntry): JsonObject {
  const parallel = [info.tp_size, info.pp_size, info.dp_size].map((size) => firstCount(size) ?? 1)
  return {
    ...shown(info),
    version: firstText(info.version, info[`${worker.runtimeType}_version`]) ?? 'unknown',
    backend: firstText(info.backend) ?? worker.runtimeType,
    gpu_count: firstCount(info.gpu_count) ?? parallel.reduce((product, size) => product * size, 1),
  }
}

function firstText(...values: unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === 'string' && value !== '')
}

function firstCount(...values: unknown[]): number | undefined {
  return values.find((value): value is number => Number.isInteger(value) && (value as number) > 0)
}
