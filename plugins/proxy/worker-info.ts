/** What the first ready worker says of its model and itself, with the documented fields always there. */
import type { WorkerEntry } from '#kernel'

type JsonObject = Record<string, unknown>

/** The worker's object with model_name, max_tokens and vocab_size guaranteed. @source API spec 2.13; routes facts 6.6 */
export function withModelInfo(info: JsonObject, worker: WorkerEntry): JsonObject {
  const card = worker.models[0]
  return {
    ...info,
    model_name:
      firstText(info.model_name, info.served_model_name, info.model_path, info.model_id, card?.id) ??
      'unknown',
    max_tokens:
      firstCount(info.max_tokens, info.context_length, info.max_model_len, card?.context_length) ?? 0,
    vocab_size: firstCount(info.vocab_size, card?.vocab_size) ?? 0,
  }
}

/** The worker's object with version, backend and gpu_count guaranteed. @source API spec 2.13; routes facts 6.6 */
export function withServerInfo(info: JsonObject, worker: WorkerEntry): JsonObject {
  const parallel = [info.tp_size, info.pp_size, info.dp_size].map((size) => firstCount(size) ?? 1)
  return {
    ...info,
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
