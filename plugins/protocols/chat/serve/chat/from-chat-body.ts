/** A chat completions body as the internal request. */
import type {
  ChatMessage,
  ChatTool,
  ContentPart,
  GenerationRequest,
  OutputConstraint,
  Sampling,
  ToolChoice,
} from '#kernel'
import { extraContentOf, imageNote } from '#shared'
import type { ChatRequest } from '../../wire/chat.ts'

/** Members that the internal request holds, or that control the reply. */
const READ: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'tools',
  'tool_choice',
  'functions',
  'function_call',
  'parallel_tool_calls',
  'response_format',
  'regex',
  'ebnf',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'seed',
  'sampling_seed',
  'logit_bias',
  'max_tokens',
  'max_completion_tokens',
  'min_tokens',
  'stop',
  'stop_token_ids',
  'ignore_eos',
  'skip_special_tokens',
  'no_stop_trim',
  'n',
  'logprobs',
  'top_logprobs',
  'reasoning_effort',
  'chat_template_kwargs',
  'continue_final_message',
  'user',
  'prompt_cache_key',
  'return_token_ids',
])

export function fromChatBody(body: ChatRequest): GenerationRequest {
  return {
    model: body.model,
    prompt: { kind: 'chat', messages: body.messages.map(toMessage) },
    tools: toTools(body),
    toolChoice: toToolChoice(body),
    constraint: toConstraint(body),
    sampling: toSampling(body),
    reasoning: body.reasoning_effort == null ? null : { effort: String(body.reasoning_effort) },
    choices: body.n ?? 1,
    topLogprobs: body.logprobs === true ? (body.top_logprobs ?? 0) : null,
    ...(body.parallel_tool_calls != null && { parallelToolCalls: body.parallel_tool_calls }),
    ...(body.chat_template_kwargs != null && { templateArguments: body.chat_template_kwargs }),
    ...(body.continue_final_message === true && { continuesLastMessage: true }),
    ...(body.user != null && { user: body.user }),
    ...(body.prompt_cache_key != null && { cacheKey: body.prompt_cache_key }),
    ...((body as { return_token_ids?: unknown }).return_token_ids === true && { wantsTokenIds: true }),
    carried: new Map(Object.entries(body).filter(([name, value]) => !READ.has(name) && value !== null)),
  }
}

type WireMessage = ChatRequest['messages'][number]

function toMessage(message: WireMessage): ChatMessage {
  // The older form of a tool result names the function in place of the call.
  if (message.role === 'function')
    return { role: 'tool', content: message.content, tool_call_id: message.name }
  const {
    role,
    name,
    tool_calls,
    function_call: legacy,
    refusal,
    tool_call_id,
    reasoning_content,
    extra_content: data,
  } = message as Exclude<WireMessage, { role: 'function' }> & {
    name?: string | null
    tool_calls?:
      | readonly {
          id: string
          function: { name: string; arguments?: string | null }
          extra_content?: unknown
        }[]
      | null
    tool_call_id?: string
    reasoning_content?: string | null
    extra_content?: unknown
    function_call?: { name: string; arguments?: string | null } | null
    refusal?: string | null
  }
  const content = message.content ?? refusal
  // The older form of a call has no id: its result names the function.
  const calls =
    tool_calls ?? (legacy == null ? null : [{ id: legacy.name, function: legacy, extra_content: null }])
  return {
    role,
    content:
      typeof content === 'string' || content == null
        ? (content ?? null)
        : content.map((part) => toPart(part, role)),
    ...(name != null && { name }),
    ...(reasoning_content != null && { reasoning_content }),
    ...(tool_call_id !== undefined && { tool_call_id }),
    ...extraContentOf(data),
    ...(calls != null && {
      tool_calls: calls.map(({ id, function: called, extra_content: ofCall }) => ({
        id,
        type: 'function',
        function: { name: called.name, arguments: called.arguments ?? '' },
        ...extraContentOf(ofCall),
      })),
    }),
  }
}

const KNOWN_PARTS: ReadonlySet<string> = new Set(['text', 'image_url', 'input_audio', 'video_url', 'file'])

function toPart(part: { readonly type: string }, role: string): ContentPart {
  if (!KNOWN_PARTS.has(part.type)) return { type: `x-${part.type}`, value: part }
  const known = part as ContentPart
  if (known.type !== 'image_url') return known
  // Set by the gateway alone.
  const { unseen: _, ...image } = known
  return role === 'tool' ? { ...image, unseen: imageNote(image.image_url.url) } : image
}

function toTools({ tools, functions }: ChatRequest): readonly ChatTool[] {
  const declared = (tools ?? []).map(({ function: declaration }) => declaration).concat(functions ?? [])
  return declared.map(({ name, description, parameters, strict }) => ({
    type: 'function',
    function: {
      name,
      ...(description != null && { description }),
      parameters: parameters ?? {},
      ...(strict != null && { strict }),
    },
  }))
}

function toToolChoice({ tool_choice: choice, function_call: legacy }: ChatRequest): ToolChoice | null {
  if (choice == null) return fromFunctionCall(legacy)
  if (typeof choice === 'string') return { mode: choice }
  if (choice.type === 'function') return { mode: 'function', name: choice.function.name }
  const names = choice.tools.flatMap((tool) => tool.function?.name ?? [])
  return { mode: 'allowed', names, isRequired: choice.mode === 'required' }
}

function fromFunctionCall(legacy: unknown): ToolChoice | null {
  if (legacy === 'auto' || legacy === 'none') return { mode: legacy }
  const { name } = (typeof legacy === 'object' && legacy !== null ? legacy : {}) as { name?: unknown }
  return typeof name === 'string' ? { mode: 'function', name } : null
}

function toConstraint({ response_format: format, regex, ebnf }: ChatRequest): OutputConstraint | null {
  if (regex != null) return { kind: 'regex', pattern: regex }
  if (ebnf != null) return { kind: 'ebnf', grammar: ebnf }
  if (format == null || format.type === 'text') return null
  if (format.type === 'json_object') return { kind: 'json_object' }
  const { name, schema, strict } = format.json_schema
  return { kind: 'json_schema', name, schema, ...(strict != null && { strict }) }
}

/** Settings that chat and text completions share. */
type SamplingFields = Pick<
  ChatRequest,
  | 'temperature'
  | 'top_p'
  | 'top_k'
  | 'min_p'
  | 'frequency_penalty'
  | 'presence_penalty'
  | 'repetition_penalty'
  | 'seed'
  | 'sampling_seed'
  | 'logit_bias'
  | 'max_tokens'
  | 'min_tokens'
  | 'stop'
  | 'stop_token_ids'
  | 'ignore_eos'
  | 'skip_special_tokens'
  | 'no_stop_trim'
> & { readonly max_completion_tokens?: number | null }

export function toSampling(body: SamplingFields): Sampling {
  const maxTokens = body.max_completion_tokens ?? body.max_tokens
  const seed = body.seed ?? body.sampling_seed
  const stop = typeof body.stop === 'string' ? [body.stop] : body.stop
  return {
    ...(body.temperature != null && { temperature: body.temperature }),
    ...(body.top_p != null && { topP: body.top_p }),
    ...(body.top_k != null && { topK: body.top_k }),
    ...(body.min_p != null && { minP: body.min_p }),
    ...(body.frequency_penalty != null && { frequencyPenalty: body.frequency_penalty }),
    ...(body.presence_penalty != null && { presencePenalty: body.presence_penalty }),
    ...(body.repetition_penalty != null && { repetitionPenalty: body.repetition_penalty }),
    ...(seed != null && { seed }),
    ...(body.logit_bias != null && { logitBias: toLogitBias(body.logit_bias) }),
    ...(maxTokens != null && { maxTokens }),
    ...(body.min_tokens != null && { minTokens: body.min_tokens }),
    ...(stop != null && { stop }),
    ...(body.stop_token_ids != null && { stopTokenIds: body.stop_token_ids }),
    ...(body.ignore_eos != null && { ignoreEos: body.ignore_eos }),
    ...(body.skip_special_tokens != null && { skipSpecialTokens: body.skip_special_tokens }),
    ...(body.no_stop_trim != null && { includesStop: body.no_stop_trim }),
  }
}

function toLogitBias(bias: Record<string, number>): ReadonlyMap<number, number> {
  return new Map(Object.entries(bias).map(([id, value]) => [Number(id), value]))
}
