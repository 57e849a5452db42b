/** The internal request as a chat completions body, or as a completions body, for one worker. */
import type {
  ChatMessage,
  ChatTool,
  ChatToolCall,
  ContentPart,
  EngineAttempt,
  EngineQuirks,
  GenerationRequest,
  OutputConstraint,
  Sampling,
  ToolChoice,
  WorkerEntry,
} from '#kernel'
import {
  answerErrors,
  ENGINE_SETTINGS,
  effortOfBudget,
  engineEffort,
  namesBeyond,
  SHARED_SETTINGS,
  withStrictRoles,
} from '#shared'
import { type ChatDialect, dialectOf } from './dialects.ts'

type Json = Record<string, unknown>

/** @param mergesSystem engines get one system message; vendors accept several */
export function toChatBody(attempt: EngineAttempt, mergesSystem = true): Buffer {
  const { request, model, worker, quirks } = attempt
  const { prompt } = request
  const given = prompt.kind === 'chat' ? prompt.messages : []
  const messages = mergesSystem && !worker.isExternal ? withStrictRoles(given) : given
  const dialect = dialectOf(worker)
  const body: Json = {
    model,
    messages: messages.map((one) => toMessage(one, dialect)),
  }
  if (request.tools.length > 0) {
    body.tools = request.tools.map(toTool)
    const choice = toToolChoice(request.toolChoice)
    if (choice !== undefined) body.tool_choice = choice
    if (request.parallelToolCalls !== undefined) body.parallel_tool_calls = request.parallelToolCalls
  }
  Object.assign(body, toChatSampling(request, dialect, quirks), toConstraint(request.constraint))
  if (request.topLogprobs !== null) {
    body.logprobs = true
    if (request.topLogprobs > 0) body.top_logprobs = request.topLogprobs
  }
  addReasoning(body, request, dialect)
  if (request.continuesLastMessage === true && !dialect.isStrict) {
    body.continue_final_message = true
    body.add_generation_prompt = false
  }
  if (request.wantsTokenIds === true && !dialect.isStrict) body.return_token_ids = true
  if (request.cacheKey !== undefined) body.prompt_cache_key = request.cacheKey
  return finished(body, attempt)
}

/** Adds what chat and completions have in common. */
function finished(body: Json, { request, worker, stream }: EngineAttempt): Buffer {
  if (request.choices !== 1) body.n = request.choices
  if (request.user !== undefined) body.user = request.user
  if (stream) {
    body.stream = true
    body.stream_options = { include_usage: true }
  }
  addCarried(body, request, worker)
  return Buffer.from(JSON.stringify(body))
}

function toMessage(message: ChatMessage, { reasoningNames, isStrict }: ChatDialect): Json {
  const { role, name, tool_calls, tool_call_id, reasoning_content, refusal, extra_content } = message
  const wire: Json = { role, content: toContent(message) }
  if (name !== undefined) wire.name = name
  if (tool_calls !== undefined && tool_calls.length > 0)
    wire.tool_calls = isStrict ? tool_calls.map(withoutExtraContent) : tool_calls
  if (tool_call_id !== undefined) wire.tool_call_id = tool_call_id
  if (refusal !== undefined) wire.refusal = refusal
  if (extra_content !== undefined && !isStrict) wire.extra_content = extra_content
  if (reasoning_content !== undefined) for (const one of reasoningNames) wire[one] = reasoning_content
  return wire
}

function withoutExtraContent({ extra_content: _, ...call }: ChatToolCall): ChatToolCall {
  return call
}

/** Chat has no flag for a failed tool call, so the text states it. */
function toContent({ content, is_error }: ChatMessage): unknown {
  if (content === null) return null
  if (typeof content === 'string') return is_error === true ? `Error: ${content}` : content
  const parts = content.map(toPart)
  return is_error === true ? [{ type: 'text', text: 'Error:' }, ...parts] : parts
}

function toPart(part: ContentPart): unknown {
  return 'value' in part ? part.value : part
}

function toTool(tool: ChatTool): Json {
  return { type: 'function', function: tool.function }
}

function toToolChoice(choice: ToolChoice | null): unknown {
  if (choice === null) return undefined
  if (choice.mode === 'function') return { type: 'function', function: { name: choice.name } }
  if (choice.mode === 'allowed') {
    const tools = choice.names.map((name) => ({ type: 'function', function: { name } }))
    return { type: 'allowed_tools', allowed_tools: { mode: choice.isRequired ? 'required' : 'auto', tools } }
  }
  return choice.mode
}

function toChatSampling(
  request: GenerationRequest,
  { maxTokensName, maxStops, isStrict }: ChatDialect,
  { mistakesStops }: EngineQuirks,
): Json {
  const { max_tokens: maxTokens, stop, ...wire } = toSampling(request, isStrict)
  if (maxTokens !== undefined) wire[maxTokensName] = maxTokens
  if (stop !== undefined && mistakesStops !== true) wire.stop = (stop as readonly string[]).slice(0, maxStops)
  return wire
}

/**
 * Sampling settings by their wire names; chat and completions use the same ones.
 * @param isStrict omits those that only engines take
 */
function toSampling({ sampling }: GenerationRequest, isStrict: boolean): Json {
  const wire: Json = {}
  for (const name in sampling) {
    const value = sampling[name as keyof Sampling]
    if (value === undefined) continue
    const wireName = SHARED_NAMES.get(name) ?? (isStrict ? undefined : ENGINE_NAMES.get(name))
    if (wireName === undefined) continue
    if (name === 'logitBias') wire[wireName] = Object.fromEntries(value as Iterable<[string, number]>)
    else if (name !== 'stop' || (value as readonly string[]).length > 0) wire[wireName] = value
  }
  return wire
}

const SHARED_NAMES: ReadonlyMap<string, string> = new Map(SHARED_SETTINGS)
const ENGINE_NAMES: ReadonlyMap<string, string> = new Map(ENGINE_SETTINGS)

function toConstraint(constraint: OutputConstraint | null): Json {
  if (constraint === null) return {}
  switch (constraint.kind) {
    case 'json_object':
      return { response_format: { type: 'json_object' } }
    case 'json_schema': {
      const { name, description, schema, strict } = constraint
      return { response_format: { type: 'json_schema', json_schema: { name, description, schema, strict } } }
    }
    case 'structural_tag':
      return { response_format: constraint.tag }
    case 'regex':
      return { regex: constraint.pattern }
    case 'ebnf':
      return { ebnf: constraint.grammar }
  }
}

/** @throws unsupported_by_worker (400) */
function addReasoning(
  body: Json,
  { reasoning, templateArguments }: GenerationRequest,
  { isStrict, highEffort }: ChatDialect,
): void {
  let template = isStrict ? undefined : templateArguments
  if (reasoning !== null) {
    const effort = reasoning.effort ?? (isStrict ? effortOfBudget(reasoning) : undefined)
    if (effort !== undefined) body.reasoning_effort = engineEffort(effort, highEffort)
    if (!isStrict && reasoning.isEnabled !== undefined) {
      const { isEnabled } = reasoning
      template = { enable_thinking: isEnabled, thinking: isEnabled, ...templateArguments }
    }
  }
  if (template !== undefined) body.chat_template_kwargs = template
}

/** Members that engines take and OpenAI refuses. */
const ENGINE_MEMBERS: ReadonlySet<string> = new Set([
  'add_generation_prompt',
  'rid',
  'separate_reasoning',
  'stream_reasoning',
])

/** Adds members of the client's body that the gateway does not read; they never replace members that it sets. */
function addCarried(body: Json, { carried }: GenerationRequest, worker: WorkerEntry): void {
  const { dataParallel } = worker
  if (carried !== undefined) {
    const { isStrict } = dialectOf(worker)
    for (const [name, value] of carried) {
      if (isStrict && ENGINE_MEMBERS.has(name)) continue
      if (!Object.hasOwn(body, name))
        Object.defineProperty(body, name, { value, enumerable: true, configurable: true, writable: true })
    }
  }
  if (dataParallel !== null) body.data_parallel_rank = dataParallel.rank
}

/** Members that the worker's body lacks. */
export function ignoredByChat(request: GenerationRequest, worker: WorkerEntry): readonly string[] {
  if (!dialectOf(worker).isStrict) return NONE
  return [
    ...namesBeyond(request.sampling, STRICT_SETTINGS),
    ...(request.templateArguments === undefined ? NONE : ['chat_template_kwargs']),
    ...(request.continuesLastMessage === true ? ['continue_final_message'] : NONE),
    ...(request.wantsTokenIds === true ? ['return_token_ids'] : NONE),
    ...[...(request.carried?.keys() ?? NONE)].filter((name) => ENGINE_MEMBERS.has(name)),
  ]
}

const STRICT_SETTINGS: ReadonlySet<string> = new Set(SHARED_NAMES.keys())

/** @throws unsupported_by_worker (400) */
export function toCompletionBody(attempt: EngineAttempt): Buffer {
  const { request, model, worker, quirks } = attempt
  if (request.logprobsOf !== undefined) {
    const param = 'token_ids_logprob'
    throw answerErrors.unsupported_by_worker.with({ param }, 'log probabilities of named tokens')
  }
  const { prompt } = request
  if (quirks.takesOneText === true && prompt.kind === 'tokens')
    throw answerErrors.unsupported_by_worker.with({ param: 'prompt' }, 'prompts of token ids')
  const { stop, ...sampling } = toSampling(request, dialectOf(worker).isStrict)
  const body: Record<string, unknown> = {
    model,
    prompt: prompt.kind === 'tokens' ? [...prompt.tokenIds] : prompt.kind === 'text' ? prompt.text : '',
    ...sampling,
    ...(stop !== undefined && quirks.mistakesStops !== true && { stop }),
    ...toConstraint(request.constraint),
  }
  if (request.topLogprobs !== null) body.logprobs = request.topLogprobs
  return finished(body, attempt)
}

const NONE: readonly string[] = []

/** Stop strings that the gateway searches for itself. */
export function unsentStops({ request, worker, quirks }: EngineAttempt): readonly string[] {
  if (quirks.mistakesStops === true) return request.sampling.stop ?? NONE
  if (request.prompt.kind !== 'chat') return NONE
  return request.sampling.stop?.slice(dialectOf(worker).maxStops) ?? NONE
}
