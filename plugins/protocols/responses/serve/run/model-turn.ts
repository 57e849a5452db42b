/** Builds the generation request of a turn from the client request and its items. */
import {
  type BuiltInType,
  type ChatMessage,
  type GenerationRequest,
  Generations,
  type HistoryItem,
  type WorkerEntry,
} from '#kernel'
import { responsesErrors } from '../../errors.ts'
import type { Parts } from '../parts.ts'
import { foreignIn } from '../prompt/foreign-items.ts'
import { nativeRequest, speaksResponses } from '../prompt/native-request.ts'
import type { Unsealer } from '../prompt/sealed-text.ts'
import { type PromptMessages, toMessages } from '../prompt/to-messages.ts'
import { toNativeItems } from '../prompt/to-native-items.ts'
import { untranslatedMembers } from '../prompt/translated.ts'
import type { CreateRequest } from '../read/read-request.ts'
import { toPlainChoice } from '../read/read-tools.ts'

/** The generation request of a turn. */
export interface ModelTurn extends Omit<PromptMessages, 'messages'> {
  readonly generation: GenerationRequest
  /** Members of the request that its worker does not get. */
  readonly ignored: readonly string[]
}

/** Builds the generation request from the items. @throws as `toMessages` */
export function toTurn(
  parts: Parts,
  tenant: string,
  request: CreateRequest,
  items: readonly HistoryItem[],
): ModelTurn {
  const unsealer = unsealerOf(parts, tenant)
  const isNative = canServeNatively(parts, request)
  const { messages, ...about } = toMessages(request.body.instructions ?? null, items, unsealer, isNative)
  const generation = toGeneration(request, messages)
  const runs = (type: BuiltInType) => parts.toolLoop?.hasBuiltIn(type, tenant) === true
  if (!isNative) {
    // New input is rejected; what is left comes from turns that workers of the format served.
    const past = new Set(items.flatMap((item) => foreignIn(item, 'input').map(({ name }) => name)))
    const lacking = parts.host.use(Generations).ignored(generation)
    const ignored = [...untranslatedMembers(request.body, runs), ...past, ...lacking]
    return { ...about, generation, ignored }
  }
  const native = nativeRequest({
    body: request.body,
    functions: request.tools.declarations,
    messageCount: messages.length,
    items: () => toNativeItems(items, unsealer),
    runs,
  })
  return { ...about, generation: { ...generation, native }, ignored: [] }
}

/** Whether a worker of the model speaks the format. */
export function canServeNatively(parts: Parts, request: CreateRequest): boolean {
  return hasNativeWorkers(parts) && workersOf(parts, request).some(speaksResponses)
}

/** Keyed by the list of workers, which is a new array after each change. */
const nativeLists = new WeakMap<readonly WorkerEntry[], boolean>()

/** Whether any worker of any model accepts the format; on most gateways none does. */
function hasNativeWorkers({ host: { balance } }: Parts): boolean {
  const { workers } = balance
  let hasAny = nativeLists.get(workers)
  if (hasAny === undefined) {
    hasAny = workers.some(speaksResponses)
    nativeLists.set(workers, hasAny)
  }
  return hasAny
}

export function unsealerOf({ seal }: Parts, tenant: string): Unsealer {
  return { open: (sealed) => seal.open(tenant, sealed) }
}

export function workersOf({ host: { balance } }: Parts, { model }: CreateRequest): readonly WorkerEntry[] {
  return balance.workersOf(model)
}

/**
 * @returns true when only workers that speak the format themselves will do
 * @throws unsupported_item_type, unsupported_content_part, unsupported_file_id, unsupported_parameter (400) when there is none
 */
export function requireNativeWorkers(
  parts: Parts,
  request: CreateRequest,
  before: readonly HistoryItem[],
  input: readonly HistoryItem[],
): boolean {
  if (request.body.prompt != null) {
    if (canServeNatively(parts, request)) return true
    throw responsesErrors.unsupported_parameter.with({ param: 'prompt' }, 'prompt')
  }
  for (const [index, item] of input.entries()) {
    const [foreign] = foreignIn(item, `input[${index}]`)
    if (foreign === undefined) continue
    if (canServeNatively(parts, request)) return true
    throw foreign.error
  }
  return before.some((item) => foreignIn(item, '').length > 0) && canServeNatively(parts, request)
}

function toGeneration(request: CreateRequest, messages: readonly ChatMessage[]): GenerationRequest {
  const { tools, toolChoice, include, body } = request
  const { top_logprobs: topLogprobs, parallel_tool_calls: parallelToolCalls } = body
  const effort = body.reasoning?.effort ?? null
  const choice = toPlainChoice(toolChoice.choice, tools.functions.length)
  // Few chat workers support allowed tools, so they get only those.
  const functions =
    choice?.mode === 'allowed'
      ? tools.functions.filter((tool) => choice.names.includes(tool.function.name))
      : tools.functions
  const wantsLogprobs = include.has('message.output_text.logprobs') || (topLogprobs ?? 0) > 0
  return {
    model: request.model,
    prompt: { kind: 'chat', messages },
    tools: functions,
    toolChoice: choice?.mode === 'allowed' ? { mode: choice.isRequired ? 'required' : 'auto' } : choice,
    constraint: request.constraint,
    sampling: request.sampling,
    reasoning: effort === null ? null : effort === 'none' ? { isEnabled: false } : { effort },
    choices: 1,
    topLogprobs: wantsLogprobs ? (topLogprobs ?? 0) : null,
    ...(parallelToolCalls != null && { parallelToolCalls }),
    ...(body.user != null && { user: body.user }),
    ...(body.prompt_cache_key != null && { cacheKey: body.prompt_cache_key }),
    carried: carriedMembers(request),
  }
}

/** Members that chat bodies have too, and that no other worker needs. */
function carriedMembers({ body }: CreateRequest): ReadonlyMap<string, unknown> {
  const carried = new Map<string, unknown>()
  if (body.text?.verbosity != null) carried.set('verbosity', body.text.verbosity)
  if (body.safety_identifier != null) carried.set('safety_identifier', body.safety_identifier)
  if (body.service_tier != null) carried.set('service_tier', body.service_tier)
  return carried
}
