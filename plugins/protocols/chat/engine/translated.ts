/** Members of a worker's chunk or answer that clients of other formats get. */
import { isObject, type JsonObject } from '#kernel'
import { TranslatedKinds } from '#shared'

const called = { name: true, arguments: true } as const

const part = new TranslatedKinds(
  {
    text: { type: true, text: true },
    refusal: { type: true, refusal: true },
    image_url: { type: true, image_url: true },
    thinking: { type: true, thinking: true, closed: true },
    reasoning: { type: true, text: true },
    reasoning_text: { type: true, text: true },
  },
  null,
)

const message = {
  role: true,
  content: part,
  reasoning: true,
  reasoning_content: true,
  refusal: true,
  images: true,
  annotations: true,
  extra_content: true,
  function_call: called,
  tool_calls: { index: true, id: true, type: true, function: called, extra_content: true },
} as const

export const CHUNK = {
  id: true,
  object: true,
  created: true,
  model: true,
  service_tier: true,
  system_fingerprint: true,
  choices: {
    index: true,
    delta: message,
    message,
    text: true,
    finish_reason: true,
    logprobs: true,
    matched_stop: true,
    stop_reason: true,
    token_ids: true,
  },
  usage: {
    prompt_tokens: true,
    completion_tokens: true,
    total_tokens: true,
    reasoning_tokens: true,
    prompt_tokens_details: {
      cached_tokens: true,
      cache_write_tokens: true,
      cache_creation_tokens: true,
      audio_tokens: true,
      image_tokens: true,
      text_tokens: true,
    },
    completion_tokens_details: { reasoning_tokens: true, audio_tokens: true, text_tokens: true },
  },
} as const

const PLAIN: readonly ReadonlySet<string>[] = [
  new Set(['id', 'object', 'created', 'model', 'choices', 'system_fingerprint']),
  new Set(['index', 'delta', 'finish_reason', 'logprobs']),
  new Set(['content', 'role', 'reasoning', 'reasoning_content', 'refusal']),
]

/**
 * True for a chunk of text alone, whose members all are translated: nearly all chunks are, and finding what a translation
 * leaves out costs more than this. bench: responses-sse
 */
export function isPlainChunk(chunk: JsonObject): boolean {
  if (!hasOnly(chunk, PLAIN[0])) return false
  const { choices } = chunk
  if (!Array.isArray(choices) || choices.length !== 1) return false
  const choice: unknown = choices[0]
  if (!isObject(choice) || !hasOnly(choice, PLAIN[1]) || !isObject(choice.delta)) return false
  return typeof choice.delta.content === 'string' && hasOnly(choice.delta, PLAIN[2])
}

function hasOnly(value: JsonObject, names: ReadonlySet<string>): boolean {
  for (const name in value) if (!names.has(name) && value[name] !== null) return false
  return true
}
