/** The internal request as a messages body for one worker. @source messages facts 3 */
import type { ChatTool, EngineAttempt, GenerationRequest, Sampling } from '#contracts'
import { messagesEngineErrors } from './errors.ts'
import { addReasoning } from './reasoning.ts'
import { toWireMessages } from './to-wire-messages.ts'
import type { Json } from './wire.ts'

const MAX_TEMPERATURE = 1

/** @throws unsupported_by_worker (400) for what the format has no words for and what would change the answer */
export function toMessagesBody(
  { request, model, worker, stream }: EngineAttempt,
  defaultMaxTokens: number,
): Buffer {
  refuseUnspeakable(request)
  const messages = request.prompt.kind === 'chat' ? request.prompt.messages : []
  // A vendor refuses thinking that it has not signed; engines want their own back.
  const isVendor = worker.isExternal
  const body: Json = {
    model,
    max_tokens: request.sampling.maxTokens ?? defaultMaxTokens,
    ...toWireMessages(messages, isVendor),
  }
  addTools(body, request)
  addSampling(body, request.sampling)
  addReasoning(body, request)
  if (request.constraint?.kind === 'json_schema') {
    const format = { type: 'json_schema', schema: request.constraint.schema }
    body.output_config = { ...(body.output_config as object | undefined), format }
  }
  if (request.user !== undefined) body.metadata = { user_id: request.user }
  if (stream) body.stream = true
  return Buffer.from(JSON.stringify(body))
}

function refuseUnspeakable({ prompt, choices, topLogprobs, constraint }: GenerationRequest): void {
  const refuse = (what: string, param: string) => {
    throw messagesEngineErrors.unsupported_by_worker.with({ param }, what)
  }
  if (prompt.kind !== 'chat') refuse('the completion of a text', 'prompt')
  if (choices !== 1) refuse('several answers at once', 'n')
  if (topLogprobs !== null) refuse('log probabilities', 'logprobs')
  if (constraint !== null && constraint.kind !== 'json_schema')
    refuse('text of this shape', 'response_format')
}

function addTools(body: Json, request: GenerationRequest): void {
  const { toolChoice: choice, parallelToolCalls } = request
  const tools = choice?.mode === 'allowed' ? allowedTools(request.tools, choice.names) : request.tools
  if (tools.length === 0) return
  body.tools = tools.map(toTool)
  const wire = toWireChoice(request)
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
