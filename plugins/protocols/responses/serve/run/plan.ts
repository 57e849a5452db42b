/**
 * Everything that is known before a response begins: the request, the history before it, and the turn for the model.
 */
import type {
  ApprovalAnswer,
  ConversationLock,
  GenerationUsage,
  HistoryItem,
  ListedServer,
  WorkerEntry,
} from '#kernel'
import { responsesErrors } from '../../errors.ts'
import { withoutCovered } from '../prompt/compacted.ts'
import { speaksResponses } from '../prompt/native-request.ts'
import { fieldOf, isObject } from '../read/fields.ts'
import { type InputItem, readInputItems } from '../read/read-items.ts'
import type { CreateRequest } from '../read/read-request.ts'
import { answersOf, listedIn } from './approvals.ts'
import {
  findItems,
  loadPast,
  type RememberedTurn,
  replaceReferences,
  unknownConversation,
} from './load-past.ts'
import { type ModelTurn, refuseForeign, toTurn, unsealerOf } from './model-turn.ts'
import type { PlanParts } from './run-parts.ts'

export interface Plan extends ModelTurn {
  readonly tenant: string
  readonly request: CreateRequest
  /** New input, references put in place. */
  readonly input: readonly HistoryItem[]
  /** Each item of it got its id here. */
  readonly hasOwnIds: boolean
  readonly approvals: readonly ApprovalAnswer[]
  readonly listed: readonly ListedServer[]
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
    const before = await loadPast(history, tenant, request, remembered)
    const known = await findItems(history, tenant, before, input)
    const whole = replaceReferences(before, input, known)
    return toPlan(parts, tenant, request, before, whole, lock, known)
  } catch (error) {
    void lock?.release()
    throw error
  }
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
  const pending = new Set(approvals.map(({ approvalId }) => approvalId))
  const isPending = ({ type, approval_request_id: id }: HistoryItem) =>
    type === 'mcp_approval_response' && pending.has(String(id))
  const told = pending.size === 0 ? input : input.filter((item) => !isPending(item))
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
