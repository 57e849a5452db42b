/** The internal request as a messages body for one worker. @source Anthropic API reference, Messages */
import type {
  ChatTool,
  ContentPart,
  EngineAttempt,
  GenerationRequest,
  NativeRequest,
  ReasoningOptions,
  Sampling,
} from '#kernel'
import { answerErrors, namesBeyond } from '#shared'
import type { MessagesRequest, WireMessage, WireTool } from '../wire.ts'
import { ENGINE } from './message-answer.ts'
import { isUnsigned, toWireMessages, withoutExtraContent } from './to-wire-messages.ts'

const MAX_TEMPERATURE = 1

type Body = Partial<MessagesRequest>

/** @throws unsupported_by_worker (400) for options that the format lacks and that would change the answer */
export function toMessagesBody(
  { request, model, worker, stream }: EngineAttempt,
  defaultMaxTokens: number,
): Buffer {
  const native = request.native?.engine === ENGINE ? request.native : null
  const body: Body =
    native === null
      ? ownBody(request, worker.isExternal, defaultMaxTokens)
      : { ...native.members(), messages: nativeMessages(request, native, worker.isExternal) }
  body.model = model
  addTools(body, request, (native?.tools ?? []) as readonly WireTool[])
  if (stream) body.stream = true
  return Buffer.from(JSON.stringify(body))
}

/** @param isVendor true for the vendor, which refuses unsigned thinking; engines need it back */
function ownBody(request: GenerationRequest, isVendor: boolean, defaultMaxTokens: number): Body {
  refuseUnsupported(request)
  const messages = request.prompt.kind === 'chat' ? request.prompt.messages : []
  const body: Body = {
    max_tokens: request.sampling.maxTokens ?? defaultMaxTokens,
    ...toWireMessages(messages, isVendor),
  }
  addSampling(body, request.sampling)
  addReasoning(body, request)
  if (request.constraint?.kind === 'json_schema') {
    const format = { type: 'json_schema', schema: request.constraint.schema }
    body.output_config = { ...body.output_config, format }
  }
  if (request.user !== undefined) body.metadata = { user_id: request.user }
  return body
}

/** The client's messages, followed by those of later rounds. */
function nativeMessages(
  { prompt }: GenerationRequest,
  native: NativeRequest,
  isVendor: boolean,
): WireMessage[] {
  const own = native.prompt() as readonly WireMessage[]
  const later = prompt.kind === 'chat' ? prompt.messages.slice(native.messageCount) : []
  return [...(isVendor ? forVendor(own) : own), ...toWireMessages(later, isVendor).messages]
}

/** Without unsigned thinking and the data of other vendors. */
function forVendor(messages: readonly WireMessage[]): readonly WireMessage[] {
  return messages.flatMap((message) => {
    const { content } = message
    if (typeof content === 'string') return [message]
    const kept = content.flatMap((block) => (isUnsigned(block) ? [] : (withoutExtraContent(block) ?? [])))
    return kept.length === 0 ? [] : [{ ...message, content: kept }]
  })
}

const TAKEN: ReadonlySet<string> = new Set(['maxTokens', 'temperature', 'topP', 'topK', 'stop'])

/** Members of a request in another format that the worker's body lacks. */
export function ignoredByMessages(request: GenerationRequest): readonly string[] {
  const { native, prompt, sampling, carried, constraint } = request
  const schema = constraint?.kind === 'json_schema' ? constraint : undefined
  if (native?.engine === ENGINE) return []
  const messages = prompt.kind === 'chat' ? prompt.messages : []
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as ContentPart[]) : []))
  return [
    ...namesBeyond(sampling, TAKEN),
    ...(carried?.keys() ?? []),
    ...(messages.some(({ name }) => name !== undefined) ? ['messages.name'] : []),
    ...(parts.some((part) => part.type === 'image_url' && part.image_url.detail != null)
      ? ['image_url.detail']
      : []),
    ...(parts.some((part) => part.type === 'file' && part.file.file_data != null && part.file.file_id != null)
      ? ['file.file_id']
      : []),
    ...(request.topLogprobs === null ? [] : ['logprobs', 'top_logprobs']),
    ...(schema?.description === undefined ? [] : ['json_schema.description']),
    // The format is strict.
    ...(schema?.strict === false ? ['json_schema.strict'] : []),
    ...(request.cacheKey === undefined ? [] : ['prompt_cache_key']),
    ...(request.wantsTokenIds === true ? ['return_token_ids'] : []),
  ]
}

function refuseUnsupported({ choices, constraint }: GenerationRequest): void {
  const refuse = (what: string, param: string) => {
    throw answerErrors.unsupported_by_worker.with({ param }, what)
  }
  if (choices !== 1) refuse('several answers at once', 'n')
  if (constraint !== null && constraint.kind !== 'json_schema')
    refuse('text of this shape', 'response_format')
}

/** @param own tools as the client declared them; they come first and replace tools of the same name */
function addTools(body: Body, request: GenerationRequest, own: readonly WireTool[]): void {
  const { toolChoice: choice, parallelToolCalls } = request
  const tools = choice?.mode === 'allowed' ? allowedTools(request.tools, choice.names) : request.tools
  const names = new Set(own.map(({ name }) => name))
  const all = [...own, ...tools.filter((tool) => !names.has(tool.function.name)).map(toTool)]
  if (all.length === 0) return
  body.tools = all
  const wire = toWireChoice(request) ?? null
  if (parallelToolCalls === undefined || wire?.type === 'none') {
    if (wire !== null) body.tool_choice = wire
  } else body.tool_choice = { ...(wire ?? { type: 'auto' }), disable_parallel_tool_use: !parallelToolCalls }
}

function allowedTools(tools: readonly ChatTool[], names: readonly string[]): readonly ChatTool[] {
  const allowed = new Set(names)
  return tools.filter((tool) => allowed.has(tool.function.name))
}

function toTool({ function: { name, description, parameters, strict } }: ChatTool): WireTool {
  const isSchema = typeof parameters === 'object' && parameters !== null
  const schema =
    isSchema && Object.keys(parameters).length > 0
      ? (parameters as Record<string, unknown>)
      : { type: 'object', properties: {} }
  return {
    name,
    ...(description !== undefined && { description }),
    input_schema: schema,
    ...(strict !== undefined && { strict }),
  }
}

/** The client's own choice if the internal form cannot express it. */
function toWireChoice({ toolChoice: choice, native }: GenerationRequest): MessagesRequest['tool_choice'] {
  if (choice === null)
    return native?.engine === ENGINE ? (native.toolChoice as MessagesRequest['tool_choice']) : null
  if (choice.mode === 'function') return { type: 'tool', name: choice.name }
  if (choice.mode === 'allowed') return { type: choice.isRequired ? 'any' : 'auto' }
  return { type: choice.mode === 'required' ? 'any' : choice.mode }
}

function addSampling(body: Body, { temperature, topP, topK, stop }: Sampling): void {
  if (temperature !== undefined) body.temperature = Math.min(temperature, MAX_TEMPERATURE)
  if (topP !== undefined) body.top_p = topP
  if (topK !== undefined && topK >= 0) body.top_k = topK
  const stops = stop?.filter((text) => text.trim() !== '') ?? []
  if (stops.length > 0) body.stop_sequences = stops
}

const MIN_BUDGET = 1_024
/** Efforts of the chat format that this one lacks. */
const EFFORTS: ReadonlyMap<string, string> = new Map([['minimal', 'low']])

/** Sets `thinking` and `output_config.effort`; thinking excludes a forced call and a temperature. */
function addReasoning(body: Body, request: GenerationRequest): void {
  const { toolChoice, sampling } = request
  const reasoning = reasoningOf(request)
  if (reasoning === null) return
  const { isEnabled, effort, budgetTokens } = reasoning
  if (isEnabled === false || effort === 'none') {
    body.thinking = { type: 'disabled' }
    return
  }
  if (effort !== undefined) body.output_config = { effort: EFFORTS.get(effort) ?? effort }
  const isForced =
    toolChoice !== null &&
    (toolChoice.mode === 'required' ||
      toolChoice.mode === 'function' ||
      (toolChoice.mode === 'allowed' && toolChoice.isRequired))
  if (isForced || (isEnabled !== true && budgetTokens === undefined)) return
  const thinking = toThinking(budgetTokens, body.max_tokens ?? 0)
  if (thinking == null) return
  body.thinking = thinking
  if (sampling.temperature !== undefined) delete body.temperature
}

/** Chat clients switch thinking by arguments of the chat template. */
function reasoningOf({ reasoning, templateArguments }: GenerationRequest): ReasoningOptions | null {
  const isEnabled = templateArguments?.enable_thinking ?? templateArguments?.thinking
  return reasoning?.isEnabled !== undefined || typeof isEnabled !== 'boolean'
    ? reasoning
    : { ...reasoning, isEnabled }
}

/** @returns null if the output limit leaves no room for thinking */
function toThinking(budgetTokens: number | undefined, maxTokens: number): Body['thinking'] {
  if (budgetTokens === undefined) return { type: 'adaptive' }
  if (maxTokens <= MIN_BUDGET) return null
  const budget = Math.min(Math.max(budgetTokens, MIN_BUDGET), maxTokens - 1)
  return { type: 'enabled', budget_tokens: budget }
}
