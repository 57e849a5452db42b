/** A chat completions body as the internal request. */
import {
  type ChatMessage,
  type ChatTool,
  type ChatToolCall,
  type ContentPart,
  type GenerationRequest,
  isObject,
  type OutputConstraint,
  type ToolChoice,
} from '#kernel'
import { answerErrors, customArguments, customFunction, extraContentOf, imageNote } from '#shared'
import type { ChatRequest } from '../wire/chat.ts'
import { SETTING_NAMES, toSampling } from './settings.ts'

/** Members that the internal request holds, or that control the response. */
const READ: ReadonlySet<string> = new Set([
  ...SETTING_NAMES,
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
    prompt: {
      kind: 'chat',
      messages: body.messages.map((one, index) => toMessage(one, `messages.${index}`)),
    },
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

type FunctionDefinition = NonNullable<ChatRequest['functions']>[number]
type WireMessage = ChatRequest['messages'][number]
/** With the members of every role but `function`. */
type AnyMessage = Omit<Extract<WireMessage, { role: 'assistant' }>, 'role' | 'content'> & {
  readonly role: Exclude<WireMessage['role'], 'function'>
  readonly tool_call_id?: string
}

function toMessage(message: WireMessage, path: string): ChatMessage {
  // The older form of a tool result names the function in place of the call.
  if (message.role === 'function')
    return { role: 'tool', content: message.content, tool_call_id: message.name }
  const { role, name, tool_calls, function_call: legacy, refusal }: AnyMessage = message
  const { tool_call_id, reasoning_content, reasoning, extra_content }: AnyMessage = message
  const thoughts = reasoning_content ?? (typeof reasoning === 'string' ? reasoning : null)
  const content = message.content ?? refusal
  // The older form of a call has no id: its result names the function.
  const calls: AnyMessage['tool_calls'] =
    tool_calls ?? (legacy == null ? null : [{ id: legacy.name, type: 'function', function: legacy }])
  return {
    role,
    content:
      typeof content === 'string' || content == null
        ? (content ?? null)
        : content.map((part) => toPart(part, role)),
    ...(name != null && { name }),
    ...(thoughts !== null && { reasoning_content: thoughts }),
    ...(tool_call_id !== undefined && { tool_call_id }),
    ...extraContentOf(extra_content),
    ...(calls != null && {
      tool_calls: calls.map((call, index) => toCall(call, `${path}.tool_calls.${index}`)),
    }),
  }
}

function toCall(call: NonNullable<AnyMessage['tool_calls']>[number], path: string): ChatToolCall {
  const { id, extra_content } = call
  const extra = extraContentOf(extra_content)
  if (call.type === 'function') {
    const { name, arguments: text } = call.function
    return { id, type: 'function', function: { name, arguments: text ?? '' }, ...extra }
  }
  if (call.type !== 'custom') throw unknownType(path, call)
  const { name, input } = call.custom
  return {
    id,
    type: 'function',
    isCustom: true,
    function: { name, arguments: customArguments(input) },
    ...extra,
  }
}

/** Types that the schema does not list reach only workers that take the body as it is. */
function unknownType(path: string, { type }: { readonly type: string }) {
  return answerErrors.unsupported_by_worker.with({ param: `${path}.type` }, `the type '${type.slice(0, 64)}'`)
}

const KNOWN_PARTS: ReadonlySet<string> = new Set([
  'text',
  'refusal',
  'image_url',
  'input_audio',
  'video_url',
  'file',
])

function hasFileUrl(part: object): boolean {
  return 'file' in part && isObject(part.file) && part.file.file_url !== undefined
}

function toPart(part: { readonly type: string }, role: string): ContentPart {
  // The format has no files by URL: workers that add them get the part as it is.
  if (!KNOWN_PARTS.has(part.type) || hasFileUrl(part)) return { type: `x-${part.type}`, value: part }
  if (part.type === 'refusal')
    return { type: 'text', text: (part as { readonly type: string; readonly refusal: string }).refusal }
  const known = part as ContentPart
  if (known.type !== 'image_url') return known
  // Set by the gateway alone.
  const { unseen: _, ...image } = known
  return role === 'tool' ? { ...image, unseen: imageNote(image.image_url.url) } : image
}

function toTools({ tools, functions }: ChatRequest): readonly ChatTool[] {
  return [...(tools ?? []).map(toTool), ...(functions ?? []).map(toFunction)]
}

function toTool(tool: NonNullable<ChatRequest['tools']>[number], index: number): ChatTool {
  if (tool.type === 'function') return toFunction(tool.function)
  if (tool.type !== 'custom') throw unknownType(`tools.${index}`, tool)
  const { name, ...members } = tool.custom
  const custom = { ...members, ...(members.format != null && { format: toFlatFormat(members.format) }) }
  return { type: 'function', custom, function: customFunction(name, custom) }
}

/** Of the Responses format, which does not nest the grammar. */
function toFlatFormat(format: object): object {
  const { grammar, ...members } = format as { readonly grammar?: object }
  return { ...members, ...grammar }
}

function toFunction({ name, description, parameters, strict }: FunctionDefinition): ChatTool {
  return {
    type: 'function',
    function: {
      name,
      ...(description != null && { description }),
      ...(parameters != null && { parameters }),
      ...(strict != null && { strict }),
    },
  }
}

function toToolChoice({ tool_choice: choice, function_call: legacy }: ChatRequest): ToolChoice | null {
  if (choice == null) return fromFunctionCall(legacy)
  if (typeof choice === 'string') return { mode: choice }
  if (choice.type === 'function') return { mode: 'function', name: choice.function.name }
  if (choice.type === 'custom') return { mode: 'function', name: choice.custom.name }
  const { mode, tools = [] } = choice.allowed_tools ?? choice
  const names = tools.flatMap((tool) => (tool.function ?? tool.custom)?.name ?? [])
  return { mode: 'allowed', names, isRequired: mode === 'required' }
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
  const { name, description, schema, strict } = format.json_schema
  return {
    kind: 'json_schema',
    name,
    schema: schema ?? {},
    ...(description != null && { description }),
    ...(strict != null && { strict }),
  }
}
