/** The body of a create request, checked field by field before anything is done. @source OpenAI API reference, Responses */
import type { OutputConstraint, Sampling } from '#kernel'
import { responsesErrors, shown } from '../../errors.ts'
import {
  fieldOf,
  isObject,
  type Json,
  missing,
  readArray,
  readBoolean,
  readChoice,
  readNumber,
  readObject,
  readString,
  readStrings,
  wrongType,
  wrongValue,
} from './fields.ts'
import { readToolChoice, type WishedChoice } from './read-tool-choice.ts'
import { type DeclaredTools, readTools } from './read-tools.ts'

const UNBOUNDED = Number.POSITIVE_INFINITY
const MAX_METADATA = 16
const MAX_METADATA_KEY = 64
const MAX_METADATA_VALUE = 512
const MAX_STOPS = 4
/** @source OpenAI API reference, Responses */
const MAX_INPUT_TEXT = 10_485_760

export const INCLUDES = [
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'message.output_text.logprobs',
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
] as const
export type Include = (typeof INCLUDES)[number]

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const
const SUMMARIES = ['auto', 'concise', 'detailed'] as const
const NAME = /^[A-Za-z0-9_-]{1,64}$/

export interface CreateRequest {
  readonly model: string
  /** Not yet read. */
  readonly input: string | readonly unknown[]
  readonly instructions: string | null
  readonly stream: boolean
  readonly store: boolean
  readonly background: boolean
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  readonly tools: DeclaredTools
  readonly toolChoice: WishedChoice
  readonly parallelToolCalls: boolean | undefined
  readonly maxToolCalls: number | null
  readonly sampling: Sampling
  readonly constraint: OutputConstraint | null
  readonly effort: string | undefined
  readonly summary: string | undefined
  readonly include: ReadonlySet<Include>
  readonly topLogprobs: number | undefined
  readonly user: string | undefined
  readonly cacheKey: string | undefined
  /** Tokens of a prompt above which it is compacted; null for no such limit. */
  readonly compactThreshold: number | null
  /** What is too long for the model is compacted rather than refused. */
  readonly truncates: boolean
  /** As it came. */
  readonly body: Json
  /** Members of the reply that say again what was asked for, with every default filled in. */
  readonly echo: Json
}

/** @throws the first thing that is wrong, as a 400 that names the field */
export function readCreateRequest(body: unknown): CreateRequest {
  if (!isObject(body)) throw responsesErrors.invalid_type('the body', 'a JSON object')
  const model = readString(body, 'model', 'model')
  if (model === undefined || model === '') missing('model')
  const instructions = readString(body, 'instructions', 'instructions') ?? null
  const sampling = readSampling(body)
  const tools = readTools(body)
  const toolChoice = readToolChoice(body, tools)
  const { effort, summary, echo: reasoning } = readReasoning(body)
  const { constraint, echo: text } = readText(body)
  const include = readInclude(fieldOf(body, 'include'))
  const topLogprobs = readNumber(body, 'top_logprobs', 'top_logprobs', { min: 0, max: 20, isInteger: true })
  const maxToolCalls =
    readNumber(body, 'max_tool_calls', 'max_tool_calls', { min: 1, max: UNBOUNDED, isInteger: true }) ?? null
  const parallelToolCalls = readBoolean(body, 'parallel_tool_calls', 'parallel_tool_calls')
  const metadata = readMetadata(body)
  const stream = readBoolean(body, 'stream', 'stream') ?? false
  readObject(body, 'stream_options', 'stream_options')
  const store = readBoolean(body, 'store', 'store')
  const background = readBoolean(body, 'background', 'background') ?? false
  const truncation = readChoice(body, 'truncation', 'truncation', ['auto', 'disabled']) ?? 'disabled'
  readChoice(body, 'service_tier', 'service_tier', ['auto', 'default', 'flex', 'priority', 'scale'])
  const user = readString(body, 'user', 'user')
  const safetyIdentifier = readString(body, 'safety_identifier', 'safety_identifier', 64) ?? null
  const cacheKey = readString(body, 'prompt_cache_key', 'prompt_cache_key', 64)
  if (fieldOf(body, 'prompt') !== undefined)
    throw responsesErrors.unsupported_parameter.with({ param: 'prompt' }, 'prompt')
  const { previousResponseId, conversationId } = readPast(body)
  checkBackground(background, stream, store)
  const input = readInput(body)
  return {
    model,
    input,
    instructions,
    stream,
    store: store ?? true,
    background,
    previousResponseId,
    conversationId,
    tools,
    toolChoice,
    parallelToolCalls,
    maxToolCalls,
    sampling,
    constraint,
    effort,
    summary,
    include,
    topLogprobs,
    user,
    cacheKey,
    compactThreshold: readContextManagement(body),
    truncates: truncation === 'auto',
    body,
    echo: {
      background,
      instructions,
      max_output_tokens: sampling.maxTokens ?? null,
      max_tool_calls: maxToolCalls,
      model,
      previous_response_id: previousResponseId,
      ...(conversationId !== null && { conversation: { id: conversationId } }),
      parallel_tool_calls: parallelToolCalls ?? true,
      reasoning,
      store: store ?? true,
      temperature: sampling.temperature ?? 1,
      top_p: sampling.topP ?? 1,
      presence_penalty: sampling.presencePenalty ?? 0,
      frequency_penalty: sampling.frequencyPenalty ?? 0,
      top_logprobs: topLogprobs ?? 0,
      text,
      tool_choice: toolChoice.echo,
      tools: tools.echo,
      truncation,
      user: user ?? null,
      service_tier: 'default',
      safety_identifier: safetyIdentifier,
      prompt_cache_key: cacheKey ?? null,
      metadata,
      ...(sampling.topK !== undefined && { top_k: sampling.topK }),
      ...(sampling.minP !== undefined && { min_p: sampling.minP }),
      ...(sampling.repetitionPenalty !== undefined && { repetition_penalty: sampling.repetitionPenalty }),
      ...(sampling.stop !== undefined && { stop: sampling.stop }),
    },
  }
}

function readInput(body: Json): string | readonly unknown[] {
  const input = fieldOf(body, 'input')
  if (input === undefined) missing('input')
  if (typeof input === 'string') {
    if (input === '') throw responsesErrors.input_text_empty.with({ param: 'input' })
    if (input.length > MAX_INPUT_TEXT) wrongValue('input', `must have at most ${MAX_INPUT_TEXT} characters`)
    return input
  }
  if (!Array.isArray(input)) wrongType('input', 'a string or an array')
  if (input.length === 0) throw responsesErrors.input_items_empty.with({ param: 'input' })
  return input
}

function readSampling(body: Json): Sampling {
  const number = (
    name: string,
    min: number,
    max: number,
    more: { isInteger?: boolean; isAbove?: boolean } = {},
  ) => readNumber(body, name, name, { min, max, ...more })
  const temperature = number('temperature', 0, 2)
  const topP = number('top_p', 0, 1)
  const topK = number('top_k', -1, UNBOUNDED, { isInteger: true })
  if (topK === 0) wrongValue('top_k', 'must be -1 or at least 1')
  const minP = number('min_p', 0, 1)
  const frequencyPenalty = number('frequency_penalty', -2, 2)
  const presencePenalty = number('presence_penalty', -2, 2)
  const repetitionPenalty = number('repetition_penalty', 0, 2, { isAbove: true })
  const maxTokens = number('max_output_tokens', 1, UNBOUNDED, { isInteger: true })
  const stop = readStop(body)
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK }),
    ...(minP !== undefined && { minP }),
    ...(frequencyPenalty !== undefined && { frequencyPenalty }),
    ...(presencePenalty !== undefined && { presencePenalty }),
    ...(repetitionPenalty !== undefined && { repetitionPenalty }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop !== undefined && { stop }),
  }
}

function readStop(body: Json): readonly string[] | undefined {
  const value = fieldOf(body, 'stop')
  const stop = typeof value === 'string' ? [value] : readStrings(body, 'stop', 'stop', MAX_STOPS)
  if (stop?.some((one) => one === '')) wrongValue('stop', 'must not hold an empty text')
  return stop
}

function readReasoning(body: Json) {
  const reasoning = readObject(body, 'reasoning', 'reasoning') ?? {}
  const effort = readChoice(reasoning, 'effort', 'reasoning.effort', EFFORTS)
  const summary =
    readChoice(reasoning, 'summary', 'reasoning.summary', SUMMARIES) ??
    readChoice(reasoning, 'generate_summary', 'reasoning.generate_summary', SUMMARIES)
  return { effort, summary, echo: { effort: effort ?? null, summary: summary ?? null } }
}

function readText(body: Json): { constraint: OutputConstraint | null; echo: Json } {
  const text = readObject(body, 'text', 'text') ?? {}
  const verbosity = readChoice(text, 'verbosity', 'text.verbosity', ['low', 'medium', 'high'])
  const more = verbosity === undefined ? {} : { verbosity }
  const format = readObject(text, 'format', 'text.format')
  const type =
    format === undefined
      ? 'text'
      : (readChoice(format, 'type', 'text.format.type', ['text', 'json_object', 'json_schema']) ??
        missing('text.format.type'))
  if (format === undefined || type === 'text')
    return { constraint: null, echo: { format: { type: 'text' }, ...more } }
  if (type === 'json_object')
    return { constraint: { kind: 'json_object' }, echo: { format: { type: 'json_object' }, ...more } }
  const name = readString(format, 'name', 'text.format.name') ?? ''
  if (name === '') throw responsesErrors.json_schema_name_empty.with({ param: 'text.format.name' })
  if (!NAME.test(name))
    wrongValue('text.format.name', 'must be letters, digits, hyphens and underscores, at most 64')
  const schema = readObject(format, 'schema', 'text.format.schema')
  if (schema === undefined) missing('text.format.schema')
  const description = readString(format, 'description', 'text.format.description')
  const strict = readBoolean(format, 'strict', 'text.format.strict')
  return {
    constraint: {
      kind: 'json_schema',
      name,
      schema,
      ...(description !== undefined && { description }),
      ...(strict !== undefined && { strict }),
    },
    echo: {
      format: { type, name, description: description ?? null, schema, strict: strict ?? false },
      ...more,
    },
  }
}

/** @throws invalid_value (400), param `include` */
export function readInclude(value: unknown): ReadonlySet<Include> {
  if (value === undefined || value === null) return new Set()
  if (!Array.isArray(value)) wrongType('include', 'an array')
  for (const one of value)
    if (!INCLUDES.includes(one as Include)) wrongValue('include', `must not hold '${shown(one)}'`)
  return new Set(value as Include[])
}

/** @returns the smallest threshold; null when there is none */
function readContextManagement(body: Json): number | null {
  let threshold: number | null = null
  for (const [index, entry] of (
    readArray(body, 'context_management', 'context_management') ?? []
  ).entries()) {
    const path = `context_management[${index}]`
    if (!isObject(entry)) wrongType(path, 'an object')
    readChoice(entry, 'type', `${path}.type`, ['compaction'])
    const limits = { min: 1, max: UNBOUNDED, isInteger: true }
    const given = readNumber(entry, 'compact_threshold', `${path}.compact_threshold`, limits)
    if (given !== undefined) threshold = Math.min(threshold ?? given, given)
  }
  return threshold
}

function readMetadata(body: Json): Readonly<Record<string, string>> {
  const metadata = readObject(body, 'metadata', 'metadata')
  if (metadata === undefined) return {}
  const entries = Object.entries(metadata)
  const invalid = (problem: string) => responsesErrors.invalid_metadata.with({ param: 'metadata' }, problem)
  if (entries.length > MAX_METADATA) throw invalid(`must have at most ${MAX_METADATA} properties`)
  for (const [key, value] of entries) {
    if (typeof value !== 'string') wrongType(`metadata.${shown(key)}`, 'a string')
    if (key.length > MAX_METADATA_KEY)
      throw invalid(`must have keys of at most ${MAX_METADATA_KEY} characters`)
    if (value.length > MAX_METADATA_VALUE)
      throw invalid(`must have values of at most ${MAX_METADATA_VALUE} characters`)
  }
  return metadata as Readonly<Record<string, string>>
}

function readPast(body: Json): { previousResponseId: string | null; conversationId: string | null } {
  const previousResponseId = readString(body, 'previous_response_id', 'previous_response_id') ?? null
  const given = fieldOf(body, 'conversation')
  if (previousResponseId !== null && given !== undefined)
    throw responsesErrors.mutually_exclusive_parameters()
  const conversationId = isObject(given)
    ? (readString(given, 'id', 'conversation') ?? '')
    : (readString(body, 'conversation', 'conversation') ?? null)
  if (conversationId !== null) checkConversationId(conversationId)
  return { previousResponseId, conversationId }
}

function checkConversationId(id: string): void {
  const invalid = (problem: string) =>
    responsesErrors.invalid_conversation_id.with({ param: 'conversation' }, problem)
  if (!id.startsWith('conv_')) throw invalid(`must begin with conv_: '${shown(id)}'`)
  if (!/^[A-Za-z0-9_-]+$/.test(id)) throw invalid('may hold letters, digits, hyphens and underscores only')
}

function checkBackground(background: boolean, stream: boolean, store: boolean | undefined): void {
  if (!background) return
  if (stream) throw responsesErrors.background_conflicts_with_stream.with({ param: 'background' })
  if (store === false) throw responsesErrors.background_requires_store.with({ param: 'background' })
}
