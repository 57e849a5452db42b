/**
 * Everything that is known before a response begins: the request, the history before it, and the turn for the model.
 * @source responses facts 2.6, 4.7, 5.2, 5.4, 5.7
 */
import type {
  ApprovalAnswer,
  CallOrigin,
  ChatMessage,
  ConversationLock,
  GenerationRequest,
  GenerationUsage,
  HistoryItem,
  HistoryProblem,
  HistoryService,
  ListedServer,
  LoadedHistory,
  ToolLoopService,
} from '#contracts'
import type { Host, WorkerEntry } from '#kernel'
import { responsesErrors } from '../errors.ts'
import { withoutCovered } from '../prompt/compacted.ts'
import { nativeRequest, speaksResponses } from '../prompt/native-request.ts'
import type { TextSeal, Unsealer } from '../prompt/sealed-text.ts'
import { toMessages } from '../prompt/to-messages.ts'
import { toNativeItems } from '../prompt/to-native-items.ts'
import { fieldOf, isObject } from '../read/fields.ts'
import { FOREIGN, type InputItem, type ItemReference, readInputItems } from '../read/read-items.ts'
import type { CreateRequest } from '../read/read-request.ts'
import { toPlainChoice } from '../read/read-tool-choice.ts'

export interface Plan {
  readonly tenant: string
  readonly request: CreateRequest
  /** New input, references put in place. */
  readonly input: readonly HistoryItem[]
  /** Each item of it got its id here. */
  readonly hasOwnIds: boolean
  readonly generation: GenerationRequest
  readonly approvals: readonly ApprovalAnswer[]
  readonly listed: readonly ListedServer[]
  readonly origins: ReadonlyMap<string, CallOrigin>
  /** History and new input. */
  readonly context: readonly HistoryItem[]
  /** Of what was too long for the model, made for this turn. */
  readonly compaction: Compaction | null
  /** Only these workers; null for all. */
  readonly accepts: ((worker: WorkerEntry) => boolean) | null
  /** Of the conversation, until the response has ended. */
  readonly lock: ConversationLock | null
}

/** A summary in place of the items before this turn. */
export interface Compaction {
  /** Of the output, the first of all. */
  readonly item: HistoryItem
  /** What it took to make it. */
  readonly usage: GenerationUsage | null
}

/** What a socket remembers of its last response. */
export interface RememberedTurn {
  readonly responseId: string
  readonly items: readonly HistoryItem[]
}

export interface PlanParts {
  readonly host: Pick<Host, 'balance'>
  readonly history: HistoryService | undefined
  readonly toolLoop: ToolLoopService | undefined
  readonly seal: TextSeal
}

export interface PlanOptions {
  /** In place of the request's own, when it was read before. */
  readonly input?: readonly HistoryItem[]
  readonly remembered?: RememberedTurn | null
}

/**
 * Plans without waiting where nothing has to be loaded.
 * @throws 400, 404, and errors of the store; nothing is locked then
 */
export function makePlan(
  parts: PlanParts,
  tenant: string,
  request: CreateRequest,
  options: PlanOptions = {},
): Plan | Promise<Plan> {
  const input = options.input ?? readInputItems(request.input)
  const needsNothing =
    request.previousResponseId === null &&
    request.conversationId === null &&
    input.every(({ type }) => type !== 'item_reference' && type !== 'mcp_approval_response')
  if (needsNothing)
    return toPlan(parts, tenant, request, [], input as readonly HistoryItem[], null, new Map())
  return loadPlan(parts, tenant, request, input, options.remembered ?? null)
}

async function loadPlan(
  parts: PlanParts,
  tenant: string,
  request: CreateRequest,
  input: readonly InputItem[],
  remembered: RememberedTurn | null,
): Promise<Plan> {
  const { history } = parts
  const { conversationId, store } = request
  let lock: ConversationLock | null = null
  if (conversationId !== null && store && history !== undefined) {
    // An unknown conversation is not a locked one.
    if ((await history.conversations.get(tenant, conversationId)) === undefined)
      throw unknownConversation(conversationId)
    lock = await history.conversations.lock(tenant, conversationId)
    if (lock === null) throw responsesErrors.conversation_locked.with({ param: 'conversation' })
  }
  try {
    const before = await loadBefore(history, tenant, request, remembered)
    const known = await findItems(history, tenant, before, input)
    const whole = replaceReferences(before, input, known)
    return toPlan(parts, tenant, request, before, whole, lock, known)
  } catch (error) {
    void lock?.release()
    throw error
  }
}

async function loadBefore(
  history: HistoryService | undefined,
  tenant: string,
  { previousResponseId, conversationId }: CreateRequest,
  remembered: RememberedTurn | null,
): Promise<readonly HistoryItem[]> {
  if (previousResponseId !== null) {
    if (remembered?.responseId === previousResponseId) return remembered.items
    const isPossible = history !== undefined && previousResponseId.startsWith('resp_')
    const loaded: LoadedHistory | HistoryProblem = isPossible
      ? await history.responses.loadChain(tenant, previousResponseId)
      : { problem: 'not_found' }
    if (loaded.problem === undefined) return loaded.items
    throw chainProblem(loaded.problem, previousResponseId)
  }
  if (conversationId === null) return []
  const loaded: LoadedHistory | HistoryProblem =
    history === undefined
      ? { problem: 'not_found' }
      : await history.conversations.load(tenant, conversationId)
  if (loaded.problem === undefined) return loaded.items
  if (loaded.problem === 'too_long')
    throw responsesErrors.conversation_too_long.with({ param: 'conversation' })
  throw unknownConversation(conversationId)
}

function chainProblem(problem: HistoryProblem['problem'], id: string) {
  const options = { param: 'previous_response_id' }
  switch (problem) {
    case 'not_found':
      return responsesErrors.previous_response_not_found.with(options, id)
    case 'in_progress':
      return responsesErrors.previous_response_in_progress.with(options, id)
    case 'unusable':
      return responsesErrors.invalid_previous_response.with(options, id)
    case 'too_long':
      return responsesErrors.previous_response_chain_too_long.with(options)
  }
}

function unknownConversation(id: string) {
  return responsesErrors.conversation_not_found.with({ param: 'conversation' }, id)
}

/** Items that the input names, from the history at hand or wherever the tenant has them. */
async function findItems(
  history: HistoryService | undefined,
  tenant: string,
  before: readonly HistoryItem[],
  input: readonly InputItem[],
): Promise<Map<string, HistoryItem>> {
  const wanted = new Set<string>()
  for (const item of input) {
    if (item.type === 'item_reference') wanted.add(item.id)
    else if (item.type === 'mcp_approval_response')
      wanted.add(String((item as HistoryItem).approval_request_id))
  }
  const found = new Map<string, HistoryItem>()
  if (wanted.size === 0) return found
  for (const item of [...before, ...input])
    if (item.type !== 'item_reference' && wanted.has(item.id)) found.set(item.id, item as HistoryItem)
  const others = [...wanted].filter((id) => !found.has(id))
  if (others.length === 0 || history === undefined) return found
  for (const [id, item] of await history.resolveItems(tenant, others)) found.set(id, item)
  return found
}

/** What the history has already is not said twice. */
function replaceReferences(
  before: readonly HistoryItem[],
  input: readonly InputItem[],
  known: ReadonlyMap<string, HistoryItem>,
): HistoryItem[] {
  if (!input.some(({ type }) => type === 'item_reference')) return [...input] as HistoryItem[]
  const inHistory = new Set(before.map(({ id }) => id))
  const whole: HistoryItem[] = []
  for (const item of input) {
    if (item.type !== 'item_reference') {
      whole.push(item as HistoryItem)
      continue
    }
    const { id } = item as ItemReference
    if (inHistory.has(id)) continue
    const found = known.get(id)
    if (found === undefined)
      throw responsesErrors.referenced_item_not_found.with({ param: 'input', code: 'item_not_found' }, id)
    whole.push(found)
  }
  return whole
}

function toPlan(
  parts: PlanParts,
  tenant: string,
  request: CreateRequest,
  before: readonly HistoryItem[],
  input: readonly HistoryItem[],
  lock: ConversationLock | null,
  known: ReadonlyMap<string, HistoryItem>,
): Plan {
  const approvals = answersOf(before, input, known)
  // Calls that wait for these answers are run, or refused, by the tool loop.
  const told = approvals.length === 0 ? input : input.filter(({ type }) => type !== 'mcp_approval_response')
  const context = before.length === 0 ? input : [...before, ...input]
  const whole = before.length === 0 ? told : [...before, ...told]
  const unsealer = unsealerOf(parts, tenant)
  const prompt = withoutCovered(whole, unsealer)
  const needsNative = refuseForeign(parts, request, input)
  return {
    tenant,
    request,
    input,
    hasOwnIds: typeof request.input === 'string' || request.input.every(isWithoutId),
    ...toTurn(parts, tenant, request, prompt),
    approvals,
    listed: listedIn(before),
    context,
    compaction: null,
    accepts: needsNative ? speaksResponses : null,
    lock,
  }
}

/** Its id is made here, and no other item is meant. */
function isWithoutId(item: unknown): boolean {
  return isObject(item) && fieldOf(item, 'id') === undefined
}

/** What the model is asked, made of the items. @throws as `toMessages` */
export function toTurn(
  parts: PlanParts,
  tenant: string,
  request: CreateRequest,
  items: readonly HistoryItem[],
): Pick<Plan, 'generation' | 'origins'> {
  const unsealer = unsealerOf(parts, tenant)
  const { messages, origins } = toMessages(request.instructions, items, unsealer)
  const generation = toGeneration(request, messages)
  if (!hasNativeWorkers(parts) || !workersOf(parts, request).some(speaksResponses))
    return { generation, origins }
  const native = nativeRequest({
    body: request.body,
    messageCount: messages.length,
    items: () => toNativeItems(items, unsealer),
    runs: (type) => parts.toolLoop?.hasBuiltIn(type, tenant) === true,
  })
  return { generation: { ...generation, native }, origins }
}

/** By the list of workers, which is another array whenever it changes. */
const nativeLists = new WeakMap<readonly WorkerEntry[], boolean>()

/** Whether any worker speaks the format, of whatever model: on most gateways none does. */
function hasNativeWorkers({ host: { balance } }: PlanParts): boolean {
  const { workers } = balance
  let hasAny = nativeLists.get(workers)
  if (hasAny === undefined) {
    hasAny = workers.some(speaksResponses)
    nativeLists.set(workers, hasAny)
  }
  return hasAny
}

export function unsealerOf({ seal }: PlanParts, tenant: string): Unsealer {
  return { open: (sealed) => seal.open(tenant, sealed) }
}

export function workersOf(
  { host: { balance } }: PlanParts,
  { model }: CreateRequest,
): readonly WorkerEntry[] {
  return balance.workersOf(balance.canonicalModel(model))
}

/**
 * @returns true when only workers that speak the format themselves will do
 * @throws unsupported_item_type (400) when there is none
 */
function refuseForeign(parts: PlanParts, request: CreateRequest, input: readonly HistoryItem[]): boolean {
  const foreign = input.findIndex(({ type }) => FOREIGN.has(type))
  if (foreign < 0) return false
  if (workersOf(parts, request).some(speaksResponses)) return true
  const param = `input[${foreign}].type`
  throw responsesErrors.unsupported_item_type.with({ param }, input[foreign].type)
}

function answersOf(
  before: readonly HistoryItem[],
  input: readonly HistoryItem[],
  known: ReadonlyMap<string, HistoryItem>,
): ApprovalAnswer[] {
  const answers: ApprovalAnswer[] = []
  const answered = new Set<string>()
  for (const item of before)
    if (item.type === 'mcp_approval_response') answered.add(String(item.approval_request_id))
  for (const item of input) {
    if (item.type !== 'mcp_approval_response') continue
    const approvalId = String(item.approval_request_id)
    const asked = known.get(approvalId)
    if (asked?.type !== 'mcp_approval_request')
      throw responsesErrors.approval_request_not_found.with({ param: 'input' }, approvalId)
    if (answered.has(approvalId))
      throw responsesErrors.approval_already_answered.with({ param: 'input' }, approvalId)
    answered.add(approvalId)
    answers.push({
      approvalId,
      label: String(asked.server_label),
      name: String(asked.name),
      arguments: String(asked.arguments),
      isApproved: item.approve === true,
      ...(typeof item.reason === 'string' && { reason: item.reason }),
    })
  }
  return answers
}

function listedIn(before: readonly HistoryItem[]): ListedServer[] {
  const listed: ListedServer[] = []
  for (const item of before) {
    if (item.type !== 'mcp_list_tools' || item.error !== undefined) continue
    const fingerprint = typeof item._fingerprint === 'string' ? item._fingerprint : null
    listed.push({ label: String(item.server_label), fingerprint })
  }
  return listed
}

function toGeneration(request: CreateRequest, messages: readonly ChatMessage[]): GenerationRequest {
  const { tools, toolChoice, effort, include, topLogprobs, parallelToolCalls, user, cacheKey } = request
  const choice = toPlainChoice(toolChoice.wish, tools.functions.length)
  // Chat workers seldom know the notion of allowed tools: they are given those alone.
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
    reasoning: effort === undefined ? null : effort === 'none' ? { isEnabled: false } : { effort },
    choices: 1,
    topLogprobs: wantsLogprobs ? (topLogprobs ?? 0) : null,
    ...(parallelToolCalls !== undefined && { parallelToolCalls }),
    ...(user !== undefined && { user }),
    ...(cacheKey !== undefined && { cacheKey }),
  }
}
