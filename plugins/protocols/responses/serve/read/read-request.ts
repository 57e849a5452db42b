/** Reads a create request: the schema first, then the rules between its fields. */
import { isObject, type JsonObject, type OutputConstraint, type Sampling } from '#kernel'
import { type Include, isInclude, withItemTypes } from '#shared'
import { missing, responsesErrors, shown, wrongValue } from '../../errors.ts'
import { type CreateBody, createBody } from '../../wire.ts'
import { isCompaction } from '../prompt/native-request.ts'
import { type RequestedChoice, readToolChoice, readTools } from './read-tools.ts'
import { type DeclaredTools, withFoundTools } from './stand-ins.ts'

/** In characters. */
const MAX_INPUT_TEXT = 10_485_760

export interface CreateRequest {
  readonly model: string
  readonly stream: boolean
  readonly store: boolean
  readonly background: boolean
  /** False: the output is empty, and no model runs. */
  readonly generate: boolean
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  readonly tools: DeclaredTools
  readonly toolChoice: RequestedChoice
  readonly sampling: Sampling
  readonly constraint: OutputConstraint | null
  readonly summary: string | undefined
  readonly include: ReadonlySet<Include>
  /** Tokens of a prompt above which it is compacted; null for no such limit. */
  readonly compactThreshold: number | null
  /** A prompt that is too long for the model is compacted rather than rejected. */
  readonly truncates: boolean
  /** As the client sent it. */
  readonly body: CreateBody & JsonObject
  /** Members of the response that repeat the request, with every default filled in. */
  readonly echo: JsonObject
}

/**
 * @param members take the place of the client's own
 * @throws the first thing that is wrong, as a 400 that names the field
 */
export function readCreateRequest(json: unknown, members: JsonObject = {}): CreateRequest {
  const body = createBody.parse(isObject(json) ? withTypes({ ...json, ...members }) : json) as CreateBody &
    JsonObject
  const { model, reasoning } = body
  const sampling = toSampling(body)
  const tools = withFoundTools(readTools(body), Array.isArray(body.input) ? body.input : [])
  const toolChoice = readToolChoice(body, tools)
  const summary = reasoning?.summary ?? reasoning?.generate_summary ?? undefined
  const { constraint, echo: text } = readText(body)
  const stream = body.stream ?? false
  const store = body.store ?? true
  const background = body.background ?? false
  const truncation = body.truncation ?? 'disabled'
  const { previousResponseId, conversationId } = readPast(body)
  if (background && stream)
    throw responsesErrors.background_conflicts_with_stream.with({ param: 'background' })
  if (background && !store) throw responsesErrors.background_requires_store.with({ param: 'background' })
  const asking = tools.gateway.find((tool) => tool.kind === 'mcp' && tool.elicits === true)
  if (asking !== undefined && !store)
    wrongValue(`${asking.param}.elicitation`, 'needs a stored response ("store": true)')
  checkInput(body.input)
  return {
    model,
    stream,
    store,
    background,
    generate: body.generate ?? true,
    previousResponseId,
    conversationId,
    tools,
    toolChoice,
    sampling,
    constraint,
    summary,
    include: new Set((body.include ?? []).filter(isInclude)),
    compactThreshold: smallestThreshold(body),
    truncates: truncation === 'auto',
    body,
    echo: {
      background,
      instructions: body.instructions ?? null,
      max_output_tokens: sampling.maxTokens ?? null,
      max_tool_calls: body.max_tool_calls ?? null,
      model,
      previous_response_id: previousResponseId,
      ...(conversationId !== null && { conversation: { id: conversationId } }),
      parallel_tool_calls: body.parallel_tool_calls ?? true,
      reasoning: { effort: reasoning?.effort ?? null, summary: summary ?? null },
      store,
      temperature: sampling.temperature ?? 1,
      top_p: sampling.topP ?? 1,
      presence_penalty: sampling.presencePenalty ?? 0,
      frequency_penalty: sampling.frequencyPenalty ?? 0,
      top_logprobs: body.top_logprobs ?? 0,
      text,
      tool_choice: toolChoice.echo,
      tools: tools.echo,
      truncation,
      user: body.user ?? null,
      service_tier: 'default',
      safety_identifier: body.safety_identifier ?? null,
      prompt_cache_key: body.prompt_cache_key ?? null,
      metadata: body.metadata ?? {},
      ...(sampling.topK !== undefined && { top_k: sampling.topK }),
      ...(sampling.minP !== undefined && { min_p: sampling.minP }),
      ...(sampling.repetitionPenalty !== undefined && { repetition_penalty: sampling.repetitionPenalty }),
      ...(sampling.stop !== undefined && { stop: sampling.stop }),
    },
  }
}

function withTypes(body: JsonObject): JsonObject {
  return Array.isArray(body.input) ? { ...body, input: withItemTypes(body.input) } : body
}

function checkInput(input: CreateBody['input']): void {
  if (input === '') throw responsesErrors.input_text_empty.with({ param: 'input' })
  if (input.length === 0) throw responsesErrors.input_items_empty.with({ param: 'input' })
  if (typeof input === 'string' && input.length > MAX_INPUT_TEXT)
    wrongValue('input', `must have at most ${MAX_INPUT_TEXT} characters (got ${input.length})`)
}

function toSampling(body: CreateBody): Sampling {
  if (body.top_k === 0) wrongValue('top_k', 'must be -1 or at least 1', body.top_k)
  const sampling: Partial<Record<keyof Sampling, unknown>> = {}
  for (const [name, member] of SETTINGS) if (body[member] != null) sampling[name] = body[member]
  if (typeof body.stop === 'string') sampling.stop = [body.stop]
  return sampling as Sampling
}

/** Names of settings in the internal request and in the body. */
const SETTINGS: readonly (readonly [name: keyof Sampling, member: keyof CreateBody])[] = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['topK', 'top_k'],
  ['minP', 'min_p'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['presencePenalty', 'presence_penalty'],
  ['repetitionPenalty', 'repetition_penalty'],
  ['maxTokens', 'max_output_tokens'],
  ['stop', 'stop'],
]

function readText({ text }: CreateBody): { constraint: OutputConstraint | null; echo: JsonObject } {
  const format = text?.format ?? { type: 'text' }
  const more = text?.verbosity ? { verbosity: text.verbosity } : {}
  if (format.type === 'text') return { constraint: null, echo: { format: { type: 'text' }, ...more } }
  if (format.type === 'json_object')
    return { constraint: { kind: 'json_object' }, echo: { format: { type: 'json_object' }, ...more } }
  const { type, name, schema, description, strict } = format
  if (!name) throw responsesErrors.json_schema_name_empty.with({ param: 'text.format.name' })
  return {
    constraint: {
      kind: 'json_schema',
      name,
      schema: schema ?? missing('text.format.schema'),
      ...(typeof description === 'string' && { description }),
      ...(typeof strict === 'boolean' && { strict }),
    },
    echo: {
      format: { type, name, description: description ?? null, schema, strict: strict ?? false },
      ...more,
    },
  }
}

/** @throws invalid_value (400), param `include` */
export function readInclude(names: readonly unknown[]): ReadonlySet<Include> {
  for (const name of names) if (!isInclude(name)) wrongValue('include', `must not hold '${shown(name)}'`)
  return new Set(names as Include[])
}

/** Null if there is none. */
function smallestThreshold({ context_management: entries }: CreateBody): number | null {
  const thresholds = (entries ?? [])
    .filter(isCompaction)
    .flatMap(({ compact_threshold: given }) => given ?? [])
  return thresholds.length === 0 ? null : Math.min(...thresholds)
}

function readPast(body: CreateBody): { previousResponseId: string | null; conversationId: string | null } {
  const previousResponseId = body.previous_response_id ?? null
  const given = body.conversation ?? null
  if (previousResponseId !== null && given !== null) throw responsesErrors.mutually_exclusive_parameters()
  const conversationId = typeof given === 'object' && given !== null ? (given.id ?? '') : given
  if (conversationId !== null) checkConversationId(conversationId)
  return { previousResponseId, conversationId }
}

function checkConversationId(id: string): void {
  const invalid = (problem: string) =>
    responsesErrors.invalid_conversation_id.with({ param: 'conversation' }, problem)
  if (!id.startsWith('conv_')) throw invalid(`must begin with conv_: '${shown(id)}'`)
  if (!/^[A-Za-z0-9_-]+$/.test(id)) throw invalid('may hold letters, digits, hyphens and underscores only')
}
