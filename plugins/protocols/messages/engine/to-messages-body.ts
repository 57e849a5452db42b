/** The internal request as a messages body for one worker. @source Anthropic API reference, Messages */
import type { ChatTool, EngineAttempt, GenerationRequest, NativeRequest, Sampling } from '#kernel'
import { answerErrors } from '#shared'
import { ENGINE } from './message-answer.ts'
import { addReasoning } from './reasoning.ts'
import { isUnsigned, toWireMessages, type WireMessage } from './to-wire-messages.ts'
import type { Json } from './wire.ts'

const MAX_TEMPERATURE = 1

/** @throws unsupported_by_worker (400) for what the format has no words for and what would change the answer */
export function toMessagesBody(
  { request, model, worker, stream }: EngineAttempt,
  defaultMaxTokens: number,
): Buffer {
  const native = request.native?.engine === ENGINE ? request.native : null
  const body =
    native === null
      ? ownBody(request, worker.isExternal, defaultMaxTokens)
      : { ...native.members(), messages: nativeMessages(request, native, worker.isExternal) }
  body.model = model
  addTools(body, request, native?.tools ?? [])
  if (stream) body.stream = true
  return Buffer.from(JSON.stringify(body))
}

/** @param isVendor it refuses thinking that it has not signed; engines want their own back */
function ownBody(request: GenerationRequest, isVendor: boolean, defaultMaxTokens: number): Json {
  refuseUnspeakable(request)
  const messages = request.prompt.kind === 'chat' ? request.prompt.messages : []
  const body: Json = {
    max_tokens: request.sampling.maxTokens ?? defaultMaxTokens,
    ...toWireMessages(messages, isVendor),
  }
  addSampling(body, request.sampling)
  addReasoning(body, request)
  if (request.constraint?.kind === 'json_schema') {
    const format = { type: 'json_schema', schema: request.constraint.schema }
    body.output_config = { ...(body.output_config as object | undefined), format }
  }
  if (request.user !== undefined) body.metadata = { user_id: request.user }
  return body
}

/** The client's own, and behind them what was said and called since. */
function nativeMessages({ prompt }: GenerationRequest, native: NativeRequest, isVendor: boolean): unknown[] {
  const own = native.prompt() as readonly WireMessage[]
  const later = prompt.kind === 'chat' ? prompt.messages.slice(native.messageCount) : []
  return [...(isVendor ? withoutUnsigned(own) : own), ...toWireMessages(later, isVendor).messages]
}

function withoutUnsigned(messages: readonly WireMessage[]): readonly WireMessage[] {
  return messages.flatMap((message) => {
    const { content } = message
    if (typeof content === 'string' || !content.some(isUnsigned)) return [message]
    const kept = content.filter((block) => !isUnsigned(block))
    return kept.length === 0 ? [] : [{ ...message, content: kept }]
  })
}

function refuseUnspeakable({ prompt, choices, topLogprobs, constraint }: GenerationRequest): void {
  const refuse = (what: string, param: string) => {
    throw answerErrors.unsupported_by_worker.with({ param }, what)
  }
  if (prompt.kind !== 'chat') refuse('the completion of a text', 'prompt')
  if (choices !== 1) refuse('several answers at once', 'n')
  if (topLogprobs !== null) refuse('log probabilities', 'logprobs')
  if (constraint !== null && constraint.kind !== 'json_schema')
    refuse('text of this shape', 'response_format')
}

/** @param own as the client declared them; they stand for themselves, first and in their order */
function addTools(body: Json, request: GenerationRequest, own: readonly Json[]): void {
  const { toolChoice: choice, parallelToolCalls } = request
  const tools = choice?.mode === 'allowed' ? allowedTools(request.tools, choice.names) : request.tools
  const names = new Set(own.map(({ name }) => name))
  const all = [...own, ...tools.filter((tool) => !names.has(tool.function.name)).map(toTool)]
  if (all.length === 0) return
  body.tools = all
  const wire = toWireChoice(request) ?? nativeChoice(request)
  if (parallelToolCalls === undefined || wire?.type === 'none') {
    if (wire !== null) body.tool_choice = wire
  } else body.tool_choice = { ...(wire ?? { type: 'auto' }), disable_parallel_tool_use: !parallelToolCalls }
}

function allowedTools(tools: readonly ChatTool[], names: readonly string[]): readonly ChatTool[] {
  const allowed = new Set(names)
  return tools.filter((tool) => allowed.has(tool.function.name))
}

function toTool({ function: { name, description, parameters, strict } }: ChatTool): Json {
  const isSchema = typeof parameters === 'object' && parameters !== null
  const schema =
    isSchema && Object.keys(parameters).length > 0 ? parameters : { type: 'object', properties: {} }
  return {
    name,
    ...(description !== undefined && { description }),
    input_schema: schema,
    ...(strict !== undefined && { strict }),
  }
}

/** In the client's own words. */
function nativeChoice({ native }: GenerationRequest): Json | null {
  const choice = native?.engine === ENGINE ? native.toolChoice : null
  return typeof choice === 'object' ? (choice as Json | null) : null
}

function toWireChoice({ toolChoice: choice }: GenerationRequest): { type: string; name?: string } | null {
  if (choice === null) return null
  if (choice.mode === 'function') return { type: 'tool', name: choice.name }
  if (choice.mode === 'allowed') return { type: choice.isRequired ? 'any' : 'auto' }
  return { type: choice.mode === 'required' ? 'any' : choice.mode }
}

function addSampling(body: Json, { temperature, topP, topK, stop }: Sampling): void {
  if (temperature !== undefined) body.temperature = Math.min(temperature, MAX_TEMPERATURE)
  if (topP !== undefined) body.top_p = topP
  if (topK !== undefined && topK >= 0) body.top_k = topK
  const stops = stop?.filter((text) => text.trim() !== '') ?? []
  if (stops.length > 0) body.stop_sequences = stops
}
