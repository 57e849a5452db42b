/** Members of a worker's response that clients of other formats get, or that repeat the request. */
import { TranslatedKinds } from '#shared'

const textPart = { type: true, text: true } as const
const item = { id: true, type: true, status: true, extra_content: true } as const
const call = { ...item, call_id: true, name: true, namespace: true } as const

/** Items of other kinds are left out. */
export const ITEMS = new TranslatedKinds(
  {
    message: {
      ...item,
      role: true,
      content: new TranslatedKinds(
        {
          output_text: { ...textPart, annotations: true, logprobs: true },
          refusal: { type: true, refusal: true },
        },
        null,
      ),
    },
    reasoning: { ...item, summary: textPart, content: textPart, encrypted_content: true },
    function_call: { ...call, arguments: true },
    custom_tool_call: { ...call, input: true },
    image_generation_call: { ...item, output_format: true, result: true },
  },
  null,
)

export const NO_ITEMS = new TranslatedKinds({}, null)

const REPEATED = [
  'background',
  'conversation',
  'frequency_penalty',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'output_text',
  'parallel_tool_calls',
  'presence_penalty',
  'previous_response_id',
  'prompt',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'store',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
] as const

export const RESPONSE = {
  ...Object.fromEntries(REPEATED.map((name) => [name, true as const])),
  id: true,
  object: true,
  created_at: true,
  completed_at: true,
  model: true,
  status: true,
  error: true,
  incomplete_details: true,
  output: true,
  service_tier: true,
  usage: {
    input_tokens: true,
    output_tokens: true,
    total_tokens: true,
    input_tokens_details: { cached_tokens: true, cache_write_tokens: true },
    output_tokens_details: { reasoning_tokens: true },
  },
} as const
