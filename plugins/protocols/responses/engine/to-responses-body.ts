/** The internal request as a responses body for one worker, which never stores anything. @source OpenAI API reference, Responses */

import {
  type ChatMessage,
  type ChatTool,
  type ContentPart,
  type EngineAttempt,
  type GenerationRequest,
  isObject,
  type JsonObject,
  type NativeRequest,
  type ToolChoice,
  type WorkerEntry,
} from '#kernel'
import { answerErrors, CUSTOM_CALL, customInput, effortOfBudget, namesBeyond } from '#shared'
import { ENGINE_SAMPLING, refusesEngineMembers } from './dialects.ts'
import { ENGINE, KINDS } from './response-answer.ts'

type Body = Record<string, unknown>

const LOGPROBS = 'message.output_text.logprobs'

/**
 * @param toolTypes what the workers run beside functions; null for everything
 * @throws unsupported_by_worker (400) for options that the format lacks and that change the answer
 */
export function toResponsesBody(
  { request, model, worker, stream }: EngineAttempt,
  toolTypes: ReadonlySet<string> | null,
): Buffer {
  const native = request.native?.engine === ENGINE ? request.native : null
  const body: Body = native === null ? ownMembers(request) : native.members()
  if (refusesEngineMembers(worker)) {
    // The gateway searches for them.
    delete body.stop
    if (native === null) for (const name of ENGINE_SAMPLING) delete body[name]
  }
  body.model = model
  const input = toInput(request, native) as readonly JsonObject[]
  body.input = worker.isExternal ? input.filter(isForService).map(withoutExtraContent) : input
  addTools(body, request, native, toolTypes)
  body.store = false
  // Sent always: `transformers serve` streams if it is absent.
  body.stream = stream
  // Clients that want padding ask for it.
  if (stream)
    body.stream_options = {
      include_obfuscation: false,
      ...(isObject(body.stream_options) && body.stream_options),
    }
  else delete body.stream_options
  return Buffer.from(JSON.stringify(body))
}

function toInput({ prompt }: GenerationRequest, native: NativeRequest | null): readonly unknown[] {
  const messages = prompt.kind === 'chat' ? prompt.messages : []
  if (native === null) return toWireItems(messages)
  const later = messages.slice(native.messageCount)
  return later.length === 0 ? native.prompt() : [...native.prompt(), ...toWireItems(later)]
}

/** External services accept only reasoning that they encrypted; engines need it in the clear. */
function isForService({ type, encrypted_content: sealed }: JsonObject): boolean {
  return type !== 'reasoning' || typeof sealed === 'string'
}

/** External services refuse the data of other vendors. */
function withoutExtraContent(item: JsonObject): JsonObject {
  if (item.extra_content === undefined) return item
  const { extra_content: _, ...rest } = item
  return rest
}

/** For a request in another format. */
function ownMembers(request: GenerationRequest): Body {
  const { choices, constraint, sampling, reasoning, topLogprobs, continuesLastMessage } = request
  if (choices !== 1) throw unsupported('more than one answer', 'n')
  if (continuesLastMessage === true) throw unsupported('the rest of a message', 'messages')
  const effort = effortOf(reasoning)
  const body: Body = {
    max_output_tokens: sampling.maxTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    stop: sampling.stop,
    top_k: sampling.topK,
    min_p: sampling.minP,
    repetition_penalty: sampling.repetitionPenalty,
    user: request.user,
    ...carriedMembers(request),
    prompt_cache_key: request.cacheKey,
    parallel_tool_calls: request.tools.length > 0 ? request.parallelToolCalls : undefined,
    reasoning: effort === undefined ? undefined : { effort },
  }
  const verbosity = request.carried?.get(VERBOSITY)
  if (constraint !== null || verbosity !== undefined)
    body.text = { format: constraint === null ? undefined : toFormat(constraint), verbosity }
  if (topLogprobs !== null) {
    body.include = [LOGPROBS]
    body.top_logprobs = topLogprobs
  }
  return body
}

function effortOf(reasoning: GenerationRequest['reasoning']): string | undefined {
  if (reasoning?.isEnabled === false) return 'none'
  return reasoning?.effort ?? (reasoning === null ? undefined : effortOfBudget(reasoning))
}

/** Members that chat bodies and this format have in common, by their names in a chat body. */
const COMMON: ReadonlySet<string> = new Set([
  'metadata',
  'moderation',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
])

function carriedMembers({ carried }: GenerationRequest): Body {
  return Object.fromEntries([...(carried ?? [])].filter(([name]) => COMMON.has(name)))
}

const TAKEN: ReadonlySet<string> = new Set([
  'maxTokens',
  'temperature',
  'topP',
  'frequencyPenalty',
  'presencePenalty',
  'stop',
  'topK',
  'minP',
  'repetitionPenalty',
])
/** For the service that refuses the settings of engines; it gets stop strings by the gateway's search. */
const TAKEN_BY_SERVICE: ReadonlySet<string> = new Set(
  [...TAKEN].filter((name) => !['topK', 'minP', 'repetitionPenalty'].includes(name)),
)

/** Members of a request in another format that the worker's body lacks. */
export function ignoredByResponses(request: GenerationRequest, worker: WorkerEntry): readonly string[] {
  const { native, prompt, sampling, carried, reasoning } = request
  if (native?.engine === ENGINE) return []
  const messages = prompt.kind === 'chat' ? prompt.messages : []
  return [
    ...namesBeyond(sampling, refusesEngineMembers(worker) ? TAKEN_BY_SERVICE : TAKEN),
    ...[...(carried?.keys() ?? [])].filter((name) => !COMMON.has(name) && name !== VERBOSITY),
    ...(messages.some(({ name }) => name !== undefined) ? ['messages.name'] : []),
    ...(request.templateArguments === undefined ? [] : ['chat_template_kwargs']),
    ...(request.wantsTokenIds === true ? ['return_token_ids'] : []),
    ...(reasoning !== null && effortOf(reasoning) === undefined ? ['thinking'] : []),
  ]
}

const VERBOSITY = 'verbosity'

function toFormat(constraint: NonNullable<GenerationRequest['constraint']>): JsonObject {
  if (constraint.kind === 'json_object') return { type: 'json_object' }
  if (constraint.kind !== 'json_schema') throw unsupported('text of this form', 'response_format')
  const { name, description, schema, strict } = constraint
  return { type: 'json_schema', name, description, schema, strict: strict ?? false }
}

function addTools(
  body: Body,
  { tools, toolChoice }: GenerationRequest,
  native: NativeRequest | null,
  types: ReadonlySet<string> | null,
): void {
  const others = native?.tools.filter(({ type }) => types === null || types.has(String(type))) ?? []
  const sent = native === null ? tools : tools.filter(({ isStandIn }) => isStandIn !== true)
  const all = [
    ...sent.map((tool) => native?.functions?.get(tool.function) ?? toTool(tool, native !== null)),
    ...others,
  ]
  if (all.length === 0) return
  body.tools = all
  // A choice of a tool that a function stands for is sent as the client wrote it.
  const choice =
    toForeignChoice(native, others) ?? (toolChoice === null ? undefined : toToolChoice(toolChoice, tools))
  if (choice !== undefined) body.tool_choice = choice
}

/** If the client does not set strictness, the worker decides in its own format; other formats are not strict. */
function toTool(
  { custom, function: { name, description, parameters, strict } }: ChatTool,
  isNative: boolean,
): JsonObject {
  if (custom !== undefined) return { type: 'custom', name, ...custom }
  return {
    type: 'function',
    name,
    description,
    parameters: parameters ?? { type: 'object', properties: {} },
    strict: strict ?? (isNative ? undefined : false),
  }
}

function toToolChoice(choice: ToolChoice, declared: readonly ChatTool[]): unknown {
  const refer = (name: string) => {
    const tool = declared.find((one) => one.function.name === name)
    return { type: tool?.custom === undefined ? 'function' : 'custom', name }
  }
  if (choice.mode === 'function') return refer(choice.name)
  if (choice.mode !== 'allowed') return choice.mode
  const tools = choice.names.map(refer)
  return { type: 'allowed_tools', mode: choice.isRequired ? 'required' : 'auto', tools }
}

function toForeignChoice(native: NativeRequest | null, sent: NativeRequest['tools']): unknown {
  const choice = native?.toolChoice ?? undefined
  return sent.length === 0 ? undefined : choice
}

function unsupported(what: string, param: string) {
  return answerErrors.unsupported_by_worker.with({ param }, what)
}

// Messages of a chat as input items.

function toWireItems(messages: readonly ChatMessage[]): JsonObject[] {
  const items: JsonObject[] = []
  const customIds = new Set<string | undefined>()
  for (const message of messages) {
    for (const { id, isCustom } of message.tool_calls ?? []) if (isCustom === true) customIds.add(id)
    if (message.role === 'tool') items.push(toOutput(message, customIds.has(message.tool_call_id)))
    else if (message.role === 'assistant') {
      const own = nativeItems(message)
      if (own === null) addTurn(items, message)
      else items.push(...own)
    } else items.push({ type: 'message', role: message.role, content: toContent(message.content) })
  }
  return items
}

function toOutput({ tool_call_id, content, is_error }: ChatMessage, isCustom: boolean): JsonObject {
  const output = typeof content === 'string' ? content : toContent(content)
  const said = is_error === true && typeof output === 'string' ? `Error: ${output}` : output
  const type = isCustom ? 'custom_tool_call_output' : 'function_call_output'
  return { type, call_id: tool_call_id, output: said }
}

/** The turn as the worker wrote it, with the call ids that the results use; null if it came from another format. */
function nativeItems({ native, tool_calls: calls = [] }: ChatMessage): JsonObject[] | null {
  if (native?.engine !== ENGINE) return null
  let count = 0
  const items = native.content.map((item) => {
    if (!KINDS.has(item.type)) return item
    // The worker stores nothing, so it knows no ids.
    const { id: _, status: __, ...rest } = item
    if (item.type !== 'function_call') return rest
    const call = calls.at(count++)
    return call === undefined ? rest : { ...rest, call_id: call.id, arguments: call.function.arguments }
  })
  return count === calls.length && items.length > 0 ? items : null
}

function addTurn(items: JsonObject[], message: ChatMessage): void {
  const { content, refusal, reasoning_content: thoughts, reasoning_signature: sealed, tool_calls } = message
  const { extra_content } = message
  const extra = extra_content === undefined ? {} : { extra_content }
  if (sealed !== undefined) items.push({ type: 'reasoning', summary: [], encrypted_content: sealed })
  else if (thoughts !== undefined)
    items.push({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: thoughts }] })
  const parts: JsonObject[] = []
  const said = typeof content === 'string' ? content : textOf(content)
  if (said !== '') parts.push({ type: 'output_text', text: said, annotations: [] })
  if (refusal !== undefined) parts.push({ type: 'refusal', refusal })
  if (parts.length > 0 || extra_content !== undefined)
    items.push({ type: 'message', role: 'assistant', content: parts, ...extra })
  for (const { id, function: called, isCustom, extra_content: ofCall } of tool_calls ?? [])
    items.push({
      ...(isCustom === true
        ? { type: CUSTOM_CALL, call_id: id, name: called.name, input: customInput(called.arguments) }
        : { type: 'function_call', call_id: id, name: called.name, arguments: called.arguments }),
      ...(ofCall !== undefined && { extra_content: ofCall }),
    })
}

function textOf(content: readonly ContentPart[] | null): string {
  return content?.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? ''
}

function toContent(content: ChatMessage['content']): JsonObject[] {
  if (typeof content === 'string') return [{ type: 'input_text', text: content }]
  return content?.map(toPart) ?? []
}

function toPart(part: ContentPart): JsonObject {
  if ('value' in part) throw unsupported(`a part of type '${part.type.slice(2, 66)}'`, 'messages')
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image_url':
      return {
        type: 'input_image',
        image_url: part.image_url.url,
        detail: part.image_url.detail ?? 'auto',
      }
    case 'file':
      return { type: 'input_file', ...part.file }
    case 'input_audio':
      return { type: 'input_audio', input_audio: part.input_audio }
    case 'video_url':
      return { type: 'input_video', video_url: part.video_url.url }
  }
}
