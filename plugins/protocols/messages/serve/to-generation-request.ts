/** A Messages request in the internal form, from which every engine adapter makes its worker's request. */
import {
  type ChatMessage,
  type ChatTool,
  type GenerationRequest,
  isObject,
  type OutputConstraint,
  type ReasoningOptions,
  type Sampling,
  type ToolChoice,
} from '#kernel'
import { invalidField } from '../errors.ts'
import type { MessagesRequest, WireTool } from '../wire.ts'
import { isCustom } from './check-request.ts'
import { toChatMessages } from './to-chat-messages.ts'
import type { MediaOptions } from './user-content.ts'

/** @throws invalid_field (400) naming what cannot be translated */
export function toGenerationRequest(request: MessagesRequest, options: MediaOptions): GenerationRequest {
  const messages = toChatMessages(request, options)
  const continues = continuesLast(messages)
  const { tool_choice: choice, metadata } = request
  return {
    model: request.model,
    prompt: { kind: 'chat', messages: continues ? withTrimmedEnd(messages) : messages },
    tools: toTools(request),
    toolChoice: toToolChoice(request),
    constraint: toConstraint(request),
    sampling: toSampling(request),
    reasoning: toReasoning(request),
    choices: 1,
    topLogprobs: null,
    ...(choice?.disable_parallel_tool_use != null && {
      parallelToolCalls: !choice.disable_parallel_tool_use,
    }),
    ...(continues && { continuesLastMessage: true }),
    ...(typeof metadata?.user_id === 'string' && { user: metadata.user_id }),
  }
}

/** True if the model is to continue a text that the client has begun. */
function continuesLast(messages: readonly ChatMessage[]): boolean {
  const last = messages.at(-1)
  return (
    last?.role === 'assistant' &&
    last.tool_calls === undefined &&
    typeof last.content === 'string' &&
    last.content.trim() !== ''
  )
}

function withTrimmedEnd(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const last = messages[messages.length - 1]
  return [...messages.slice(0, -1), { ...last, content: (last.content as string).trimEnd() }]
}

/**
 * Omits the vendor's tools. Deferred tools (`defer_loading`) are offered once a result of the client's own tool search
 * refers to them; the vendor's tool search does not run here, so with it they are offered at once.
 */
function toTools({ tools, messages }: MessagesRequest): readonly ChatTool[] {
  const all = tools ?? []
  const hasDeferred = all.some((tool) => tool.defer_loading === true)
  const isLoaded = hasDeferred && !all.some(isVendorSearch) ? loadedTools(messages) : null
  return all
    .filter(
      (tool) => isCustom(tool) && (tool.defer_loading !== true || (isLoaded?.has(tool.name ?? '') ?? true)),
    )
    .map(({ name, description, input_schema: schema, strict }) => ({
      type: 'function',
      function: {
        name: name ?? '',
        ...(typeof description === 'string' && { description }),
        parameters: toObjectSchema(schema),
        ...(typeof strict === 'boolean' && { strict }),
      },
    }))
}

function isVendorSearch({ type }: WireTool): boolean {
  return type?.startsWith('tool_search_tool_') === true
}

/** Names of the tools that results refer to. */
function loadedTools(messages: MessagesRequest['messages']): ReadonlySet<unknown> {
  const names = new Set<unknown>()
  for (const { content } of messages) {
    if (typeof content === 'string') continue
    for (const block of content)
      for (const part of 'content' in block ? referencesIn(block.content) : [])
        if (isObject(part) && part.type === 'tool_reference') names.add(part.tool_name)
  }
  return names
}

/** A client's search has references as its result, a vendor's search as a member of it. */
function referencesIn(result: unknown): readonly unknown[] {
  const parts = isObject(result) ? result.tool_references : result
  return Array.isArray(parts) ? parts : []
}

function toObjectSchema(schema: unknown): unknown {
  if (!isObject(schema)) return { type: 'object', properties: {} }
  return schema.type === undefined && schema.anyOf === undefined ? { type: 'object', ...schema } : schema
}

function toToolChoice({ tool_choice: choice }: MessagesRequest): ToolChoice | null {
  if (choice == null) return null
  switch (choice.type) {
    case 'any':
      return { mode: 'required' }
    case 'tool':
      return { mode: 'function', name: choice.name ?? '' }
    default:
      return { mode: choice.type }
  }
}

function toConstraint({
  output_config: config,
  output_format: older,
}: MessagesRequest): OutputConstraint | null {
  const path = config?.format == null ? 'output_format' : 'output_config.format'
  const format = config?.format ?? older
  if (format == null) return null
  if (!isObject(format) || format.type !== 'json_schema')
    throw invalidField(`${path}.type`, "must be 'json_schema'", isObject(format) ? format.type : format)
  if (!isObject(format.schema)) throw invalidField(`${path}.schema`, 'must be an object', format.schema)
  const name = typeof format.name === 'string' && format.name !== '' ? format.name : 'output'
  return { kind: 'json_schema', name, schema: format.schema, strict: true }
}

function toSampling(request: MessagesRequest): Sampling {
  const { temperature, top_p: topP, top_k: topK, max_tokens: maxTokens, stop_sequences: stops } = request
  return {
    ...(temperature != null && { temperature }),
    ...(topP != null && { topP }),
    ...(topK != null && { topK }),
    ...(maxTokens != null && { maxTokens }),
    ...(stops != null && stops.length > 0 && { stop: stops }),
  }
}

function toReasoning({ thinking, output_config: config }: MessagesRequest): ReasoningOptions | null {
  const given = config?.effort
  if (given != null && typeof given !== 'string')
    throw invalidField('output_config.effort', 'must be a string', given)
  const effort = given ?? undefined
  if (thinking == null && effort === undefined) return null
  return {
    ...(thinking != null && { isEnabled: thinking.type !== 'disabled' }),
    ...(effort !== undefined && { effort }),
    ...(thinking?.type === 'enabled' && { budgetTokens: thinking.budget_tokens }),
  }
}
