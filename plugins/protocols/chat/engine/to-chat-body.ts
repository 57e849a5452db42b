/** The internal request as a chat completions body for one worker. */
import type {
  ChatMessage,
  ChatTool,
  ContentPart,
  EngineAttempt,
  GenerationRequest,
  OutputConstraint,
  ReasoningWish,
  Sampling,
  ToolChoice,
  WorkerEntry,
} from '#kernel'
import { isOpenAi, toldStops } from './stops.ts'

type Json = Record<string, unknown>

export function toChatBody({ request, model, worker, stream }: EngineAttempt): Buffer {
  const { prompt } = request
  const profile = profileOf(worker)
  const body: Json = {
    model,
    messages: prompt.kind === 'chat' ? prompt.messages.map((one) => toMessage(one, profile)) : [],
  }
  if (request.tools.length > 0) {
    body.tools = request.tools.map(toTool)
    const choice = toToolChoice(request.toolChoice)
    if (choice !== undefined) body.tool_choice = choice
    if (request.parallelToolCalls !== undefined) body.parallel_tool_calls = request.parallelToolCalls
  }
  Object.assign(body, toChatSampling(request, profile), toConstraint(request.constraint))
  if (request.choices !== 1) body.n = request.choices
  if (request.topLogprobs !== null) {
    body.logprobs = true
    if (request.topLogprobs > 0) body.top_logprobs = request.topLogprobs
  }
  addReasoning(body, request, profile)
  // The vendor's own service goes on by itself, or not.
  if (request.continuesLastMessage === true && !profile.isOpenAi) {
    body.continue_final_message = true
    body.add_generation_prompt = false
  }
  if (request.wantsTokenIds === true && !profile.isOpenAi) body.return_token_ids = true
  if (request.user !== undefined) body.user = request.user
  if (request.cacheKey !== undefined) body.prompt_cache_key = request.cacheKey
  if (stream) {
    body.stream = true
    body.stream_options = { include_usage: true }
  }
  addCarried(body, request, worker)
  return Buffer.from(JSON.stringify(body))
}

/** What is known of the service behind a worker beyond the format that all share. */
interface Profile {
  /** The vendor's own service: it refuses what engines add to the format. */
  readonly isOpenAi: boolean
}

function profileOf(worker: WorkerEntry): Profile {
  return { isOpenAi: isOpenAi(worker) }
}

function toMessage(message: ChatMessage, { isOpenAi }: Profile): Json {
  const { role, name, tool_calls, tool_call_id, reasoning_content, refusal } = message
  const wire: Json = { role, content: toContent(message) }
  if (name !== undefined) wire.name = name
  if (tool_calls !== undefined && tool_calls.length > 0) wire.tool_calls = tool_calls
  if (tool_call_id !== undefined) wire.tool_call_id = tool_call_id
  if (refusal !== undefined) wire.refusal = refusal
  if (reasoning_content !== undefined && !isOpenAi) wire.reasoning_content = reasoning_content
  return wire
}

/** Chat has no flag for a failed tool call: the text says so. */
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

/** Where the vendor's own service differs: the longest answer has another name, and stops are few. */
function toChatSampling(request: GenerationRequest, { isOpenAi }: Profile): Json {
  const wire = toSampling(request, isOpenAi)
  if (!isOpenAi) return wire
  const { max_tokens: maxTokens, stop, ...shared } = wire
  if (maxTokens !== undefined) shared.max_completion_tokens = maxTokens
  if (stop !== undefined) shared.stop = toldStops(stop as readonly string[])
  return shared
}

/**
 * Sampling settings by their wire names; chat and completions use the same ones.
 * @param isOpenAi leaves out those that are of engines alone
 */
export function toSampling({ sampling }: GenerationRequest, isOpenAi: boolean): Json {
  const wire: Json = {}
  for (const name in sampling) {
    const value = sampling[name as keyof Sampling]
    if (value === undefined) continue
    const wireName = SHARED_NAMES.get(name) ?? (isOpenAi ? undefined : ENGINE_NAMES.get(name))
    if (wireName === undefined) continue
    if (name === 'logitBias') wire[wireName] = Object.fromEntries(value as Iterable<[string, number]>)
    else if (name !== 'stop' || (value as readonly string[]).length > 0) wire[wireName] = value
  }
  return wire
}

/** What every service takes. */
const SHARED_NAMES: ReadonlyMap<string, string> = new Map<keyof Sampling, string>([
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['presencePenalty', 'presence_penalty'],
  ['seed', 'seed'],
  ['logitBias', 'logit_bias'],
  ['stop', 'stop'],
  ['maxTokens', 'max_tokens'],
])
/** What engines add to the format. */
const ENGINE_NAMES: ReadonlyMap<string, string> = new Map<keyof Sampling, string>([
  ['topK', 'top_k'],
  ['minP', 'min_p'],
  ['repetitionPenalty', 'repetition_penalty'],
  ['minTokens', 'min_tokens'],
  ['stopTokenIds', 'stop_token_ids'],
  ['ignoreEos', 'ignore_eos'],
  ['skipSpecialTokens', 'skip_special_tokens'],
  ['includesStop', 'no_stop_trim'],
])

export function toConstraint(constraint: OutputConstraint | null): Json {
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

function addReasoning(
  body: Json,
  { reasoning, templateArguments }: GenerationRequest,
  profile: Profile,
): void {
  let template = profile.isOpenAi ? undefined : templateArguments
  if (reasoning !== null) {
    const effort = reasoning.effort ?? (profile.isOpenAi ? effortOfBudget(reasoning) : undefined)
    if (effort !== undefined) body.reasoning_effort = effort
    if (!profile.isOpenAi && reasoning.isEnabled !== undefined) {
      const { isEnabled } = reasoning
      template = { enable_thinking: isEnabled, thinking: isEnabled, ...templateArguments }
    }
  }
  if (template !== undefined) body.chat_template_kwargs = template
}

/** Thinking budgets of the vendor's format as efforts. */
function effortOfBudget({ isEnabled, budgetTokens }: ReasoningWish): string | undefined {
  if (isEnabled === false) return 'none'
  if (budgetTokens === undefined) return undefined
  if (budgetTokens < 4_096) return 'low'
  return budgetTokens < 16_384 ? 'medium' : 'high'
}

/** What engines read of a body and the gateway does not; the vendor's own service refuses these. */
const ENGINE_MEMBERS: ReadonlySet<string> = new Set([
  'add_generation_prompt',
  'rid',
  'separate_reasoning',
  'stream_reasoning',
])

/** What the client sent that nobody here reads; it never takes the place of what the gateway has set. */
export function addCarried(body: Json, { carried }: GenerationRequest, worker: WorkerEntry): void {
  const { dataParallel } = worker
  if (carried !== undefined) {
    const isToOpenAi = isOpenAi(worker)
    for (const [name, value] of carried) {
      if (isToOpenAi && ENGINE_MEMBERS.has(name)) continue
      if (!Object.hasOwn(body, name))
        Object.defineProperty(body, name, { value, enumerable: true, configurable: true, writable: true })
    }
  }
  if (dataParallel !== null) body.data_parallel_rank = dataParallel.rank
}
