/** Members of a chat body that its internal form holds; those beside the lists here are carried. */
import { FIRST_OF, TranslatedKinds, untranslatedPaths } from '#shared'
import type { ChatRequest } from '../wire/chat.ts'

/** Parts of other types are carried too. */
const part = new TranslatedKinds(
  {
    text: { type: true, text: true },
    refusal: { type: true, refusal: true },
    image_url: { type: true, image_url: { url: true, detail: true } },
    input_audio: { type: true, input_audio: { data: true, format: true } },
    video_url: { type: true, video_url: { url: true } },
    file: { type: true, file: { file_id: true, file_data: true, filename: true } },
  },
  true,
)

const called = { name: true, arguments: true } as const
const declared = { name: true, description: true, parameters: true, strict: true } as const

const LISTED = {
  messages: {
    role: true,
    content: part,
    name: true,
    tool_calls: new TranslatedKinds(
      {
        function: { id: true, type: true, function: called, extra_content: true },
        custom: { id: true, type: true, custom: { name: true, input: true }, extra_content: true },
      },
      true,
    ),
    tool_call_id: true,
    function_call: called,
    refusal: true,
    reasoning_content: true,
    reasoning: true,
    extra_content: true,
    [FIRST_OF]: [
      ['content', 'refusal'],
      ['reasoning_content', 'reasoning'],
      ['tool_calls', 'function_call'],
    ],
  },
  tools: new TranslatedKinds(
    {
      function: { type: true, function: declared },
      custom: { type: true, custom: true },
    },
    true,
  ),
  functions: declared,
  response_format: {
    type: true,
    json_schema: { name: true, description: true, schema: true, strict: true },
  },
  stream_options: { include_usage: true },
  max_completion_tokens: true,
  max_tokens: true,
  seed: true,
  sampling_seed: true,
  tool_choice: true,
  function_call: true,
  [FIRST_OF]: [
    ['max_completion_tokens', 'max_tokens'],
    ['seed', 'sampling_seed'],
    ['tool_choice', 'function_call'],
  ],
} as const

/** Paths of what every worker that gets a translation lacks. */
export function untranslatedMembers(body: ChatRequest): string[] {
  const listed = Object.entries(body).filter(([name]) => Object.hasOwn(LISTED, name))
  return untranslatedPaths(Object.fromEntries(listed), LISTED)
}
