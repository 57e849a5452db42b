/** Requests of the Ollama API as generation requests. @source https://docs.ollama.com/api */
import {
  type ChatMessage,
  type ChatTool,
  type ChatToolCall,
  type ContentPart,
  type GenerationRequest,
  type Sampling,
  type Static,
  Type,
} from 'weir-gateway'

const Images = Type.Optional(Type.Array(Type.String({ description: 'Base64 of an image.' })))
const common = {
  model: Type.String({ minLength: 1 }),
  stream: Type.Optional(Type.Boolean({ default: true })),
  think: Type.Optional(Type.Union([Type.Boolean(), Type.String()])),
  format: Type.Optional(Type.Union([Type.String(), Type.Object({})])),
  options: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
}

const Message = Type.Object({
  role: Type.Enum(['system', 'user', 'assistant', 'tool']),
  content: Type.Optional(Type.String()),
  thinking: Type.Optional(Type.String()),
  images: Images,
  tool_calls: Type.Optional(
    Type.Array(
      Type.Object({
        id: Type.Optional(Type.String()),
        function: Type.Object({ name: Type.String(), arguments: Type.Object({}) }),
      }),
    ),
  ),
  tool_name: Type.Optional(Type.String()),
  tool_call_id: Type.Optional(Type.String()),
})

const Tool = Type.Object({
  function: Type.Object({
    name: Type.String(),
    description: Type.Optional(Type.String()),
    parameters: Type.Optional(Type.Unknown()),
  }),
})

export const ChatBody = Type.Object({
  ...common,
  messages: Type.Array(Message),
  tools: Type.Optional(Type.Array(Tool)),
})
export const GenerateBody = Type.Object({
  ...common,
  prompt: Type.String(),
  system: Type.Optional(Type.String()),
  images: Images,
  raw: Type.Optional(Type.Boolean()),
})

type ChatBody = Static<typeof ChatBody>
type GenerateBody = Static<typeof GenerateBody>
type WireMessage = Static<typeof Message>

export function fromChat(body: ChatBody): GenerationRequest {
  return {
    ...sharedMembers(body),
    prompt: { kind: 'chat', messages: toMessages(body.messages) },
    tools: (body.tools ?? []).map(toTool),
  }
}

/** A `raw` prompt is not put into the chat template of the model. */
export function fromGenerate(body: GenerateBody): GenerationRequest {
  const { prompt, system, images, raw } = body
  const messages: ChatMessage[] = []
  if (system !== undefined && system !== '') messages.push({ role: 'system', content: system })
  messages.push({ role: 'user', content: toContent(prompt, images) })
  return {
    ...sharedMembers(body),
    prompt: raw === true ? { kind: 'text', text: prompt } : { kind: 'chat', messages },
    tools: [],
  }
}

function sharedMembers({ model, think, format, options = {} }: Omit<GenerateBody, 'prompt'>) {
  return {
    // Clients add the tag if the user names none.
    model: model.replace(/:latest$/, ''),
    toolChoice: null,
    constraint: toConstraint(format),
    sampling: toSampling(options),
    reasoning: toReasoning(think),
    choices: 1,
    topLogprobs: null,
  }
}

function toConstraint(format: GenerateBody['format']): GenerationRequest['constraint'] {
  if (format === undefined || format === '') return null
  if (typeof format === 'string') return { kind: 'json_object' }
  return { kind: 'json_schema', name: 'format', schema: format }
}

function toReasoning(think: GenerateBody['think']): GenerationRequest['reasoning'] {
  if (think === undefined) return null
  return typeof think === 'boolean' ? { isEnabled: think } : { isEnabled: true, effort: think }
}

/** Names of Ollama's options by ours. */
const NUMBERS = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  minP: 'min_p',
  seed: 'seed',
  repetitionPenalty: 'repeat_penalty',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
} as const

function toSampling(options: Readonly<Record<string, unknown>>): Sampling {
  const sampling: Record<string, unknown> = {}
  for (const [name, wireName] of Object.entries(NUMBERS))
    if (typeof options[wireName] === 'number') sampling[name] = options[wireName]
  const { num_predict: most, stop } = options
  // Negative: no limit.
  if (typeof most === 'number' && most > 0) sampling.maxTokens = most
  if (typeof stop === 'string') sampling.stop = [stop]
  else if (Array.isArray(stop)) sampling.stop = stop.filter((one) => typeof one === 'string')
  return sampling
}

function toTool({ function: { name, description, parameters } }: Static<typeof Tool>): ChatTool {
  return {
    type: 'function',
    function: { name, ...(description !== undefined && { description }), parameters: parameters ?? {} },
  }
}

/** Ollama's calls need no ids: a result belongs to the first call of its tool that has none yet. */
function toMessages(messages: readonly WireMessage[]): ChatMessage[] {
  let open: ChatToolCall[] = []
  let count = 0
  return messages.map(
    ({ role, content = '', images, thinking, tool_calls: calls, tool_name, tool_call_id }) => {
      if (role === 'tool') {
        const call =
          open.find(({ id, function: { name } }) =>
            tool_call_id === undefined ? name === tool_name : id === tool_call_id,
          ) ?? open[0]
        open = open.filter((one) => one !== call)
        return { role, content, tool_call_id: tool_call_id ?? call?.id ?? '' }
      }
      if (calls === undefined || calls.length === 0)
        return { role, content: toContent(content, images), ...(thinking && { reasoning_content: thinking }) }
      open = calls.map(({ id, function: called }) => ({
        id: id ?? `call_${count++}`,
        type: 'function',
        function: { name: called.name, arguments: JSON.stringify(called.arguments) },
      }))
      const text = content === '' ? null : content
      return { role, content: text, tool_calls: open, ...(thinking && { reasoning_content: thinking }) }
    },
  )
}

function toContent(text: string, images: readonly string[] = []): ChatMessage['content'] {
  if (images.length === 0) return text
  const parts: ContentPart[] = images.map((data) => ({
    type: 'image_url',
    image_url: { url: `data:${mediaType(data)};base64,${data}` },
  }))
  return [{ type: 'text', text }, ...parts]
}

/** First characters of the Base64 of image formats. */
const MEDIA_TYPES = [
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
] as const

function mediaType(base64: string): string {
  return MEDIA_TYPES.find(([start]) => base64.startsWith(start))?.[1] ?? 'image/png'
}
