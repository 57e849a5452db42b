/** What the labels of an engine say about its model, whatever protocol they were read by. */

type Labels = Readonly<Record<string, string>>

/** The first one that is set wins, as in the next list. */
const MODEL_ID_LABELS = ['served_model_name', 'model_id', 'model_path']
const CONTEXT_LABELS = [
  'context_length',
  'max_context_length',
  'max_model_len',
  'max_total_tokens',
  'max_seq_len',
]

/** Capabilities of a language model, and of any model whose card lists none. */
export const DEFAULT_CAPABILITIES: readonly string[] = Object.freeze([
  'chat',
  'completions',
  'responses',
  'tools',
])

/** Id of the main model; undefined if no label names it. */
export function modelIdOf(labels: Labels): string | undefined {
  return MODEL_ID_LABELS.map((name) => labels[name]).find(Boolean)
}

/** Tokens; undefined if no label has a valid number. */
export function contextLengthOf(labels: Labels): number | undefined {
  return CONTEXT_LABELS.map((name) => positiveCount(labels[name])).find((length) => length !== undefined)
}

export function isEmbeddingModel(labels: Labels): boolean {
  return labels.is_embedding === 'true' || labels.is_generation === 'false'
}

/** A positive whole number, also when written as text. */
export function positiveCount(value: unknown): number | undefined {
  const count = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN
  return Number.isSafeInteger(count) && count > 0 ? count : undefined
}
