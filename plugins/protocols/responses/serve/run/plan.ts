/**
 * Everything that is known before a response begins: the request, the history before it, and the turn for the model.
 */
import type {
  ApprovalAnswer,
  ConversationLock,
  ExtraHeaders,
  GenerationUsage,
  HistoryItem,
  ListedServer,
  WorkerEntry,
} from '#kernel'
import { ignoredMembers, warningHeader } from '#shared'
import { responsesErrors } from '../../errors.ts'
import { answersOf, withoutAnswers } from '../approvals.ts'
import type { Parts } from '../parts.ts'
import { hasForeignSummary, withoutCovered } from '../prompt/compaction.ts'
import { speaksResponses } from '../prompt/native-request.ts'
import { readInputItems, type WholeItem } from '../read/read-items.ts'
import type { CreateRequest } from '../read/read-request.ts'
import { withFoundTools } from '../read/stand-ins.ts'
import {
  findItems,
  loadPast,
  type RememberedTurn,
  replaceReferences,
  unknownConversation,
} from './load-past.ts'
import { canServeNatively, type ModelTurn, requireNativeWorkers, toTurn, unsealerOf } from './model-turn.ts'

export interface Plan extends ModelTurn {
  readonly request: CreateRequest
  readonly approvals: readonly ApprovalAnswer[]
  readonly listed: readonly ListedServer[]
  /** The output of the turn is a summary of everything before it. */
  readonly isCompaction: boolean
  /** No model runs for the output. */
  readonly isAnswered: boolean
  /** Only these workers; null for all. */
  readonly accepts: ((worker: WorkerEntry) => boolean) | null
  readonly lasting: LastingPlan
}

/** The part of a plan that is kept until the response ends. */
export interface LastingPlan extends Pick<CreateRequest, 'store' | 'previousResponseId' | 'conversationId'> {
  readonly tenant: string
  /** New input, with items in place of references. */
  readonly input: readonly HistoryItem[]
  /** The gateway generated the ids of all input items. */
  readonly hasOwnIds: boolean
  /** History and new input. */
  readonly context: readonly HistoryItem[]
  /** The summary of earlier items that this turn begins with; null without one. */
  readonly compaction: Compaction | null
  /** Of the conversation. */
  readonly lock: ConversationLock | null
}

/** A summary in place of the items before this turn. */
export interface Compaction {
  /** The first item of the output. */
  readonly item: HistoryItem
  /** Tokens used for the summary. */
  readonly usage: GenerationUsage | null
}

export interface PlanOptions {
  /** Replaces the request's input if it was read before. */
  readonly input?: readonly HistoryItem[]
  readonly remembered?: RememberedTurn | null
}

/**
 * Returns synchronously if nothing has to be loaded.
 * @throws 400, 404, and errors of the store; nothing is locked then
 */
export function makePlan(
  parts: Parts,
  tenant: string,
  request: CreateRequest,
  options: PlanOptions = {},
): Plan | Promise<Plan> {
  const input = options.input ?? readInputItems(request.body.input)
  const needsNothing =
    request.previousResponseId === null &&
    request.conversationId === null &&
    input.every(({ type }) => type !== 'item_reference' && type !== 'mcp_approval_response')
  if (needsNothing)
    return toPlan(parts, tenant, request, [], input as readonly HistoryItem[], null, NOTHING_KNOWN)
  return loadPlan(parts, tenant, request, input, options.remembered ?? null)
}

const NOTHING_KNOWN: ReadonlyMap<string, HistoryItem> = new Map()

async function loadPlan(
  parts: Parts,
  tenant: string,
  request: CreateRequest,
  input: readonly WholeItem[],
  remembered: RememberedTurn | null,
): Promise<Plan> {
  const { history } = parts
  const { conversationId, store } = request
  let lock: ConversationLock | null = null
  if (conversationId !== null && store && history !== undefined) {
    // Unknown conversations are reported as such, not as locked.
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
  parts: Parts,
  tenant: string,
  given: CreateRequest,
  before: readonly HistoryItem[],
  input: readonly HistoryItem[],
  lock: ConversationLock | null,
  known: ReadonlyMap<string, HistoryItem>,
): Plan {
  const approvals = answersOf(before, input, known)
  const settled = withoutAnswers(input, approvals)
  const context = before.length === 0 ? input : [...before, ...input]
  const whole = before.length === 0 ? settled : [...before, ...settled]
  const tools = withFoundTools(given.tools, whole)
  const request = tools === given.tools ? given : { ...given, tools }
  const unsealer = unsealerOf(parts, tenant)
  const prompt = withoutCovered(whole, unsealer)
  const { body } = request
  const isCompaction = input.at(-1)?.type === TRIGGER
  const needsNative =
    requireNativeWorkers(parts, request, before, input) ||
    ((isCompaction || hasForeignSummary(prompt, unsealer)) && canServeNatively(parts, request))
  const { store, previousResponseId, conversationId } = request
  return {
    request,
    ...toTurn(parts, tenant, request, prompt),
    approvals,
    listed: listedIn(before),
    isCompaction: isCompaction && !needsNative,
    isAnswered: !request.generate,
    accepts: needsNative ? speaksResponses : null,
    lasting: {
      tenant,
      input,
      // An id from the client may belong to another item.
      hasOwnIds: typeof body.input === 'string' || body.input.every(({ id }) => id == null),
      context,
      compaction: null,
      lock,
      store,
      previousResponseId,
      conversationId,
    },
  }
}

/** Servers whose tools the history lists. */
function listedIn(before: readonly HistoryItem[]): ListedServer[] {
  const listed: ListedServer[] = []
  for (const item of before) {
    if (item.type !== 'mcp_list_tools' || item.error !== undefined) continue
    const fingerprint = typeof item._fingerprint === 'string' ? item._fingerprint : null
    listed.push({ label: String(item.server_label), fingerprint })
  }
  return listed
}

/** As the last item of the input: a request for a compaction. */
const TRIGGER = 'compaction_trigger'

/**
 * `encrypted_reasoning_dropped; items=<n>` where reasoning in the input could not be opened, and `members_ignored` for
 * members that only workers of the format may know, where there are none.
 */
export function warningsOf({ droppedReasoning, ignored }: Plan): readonly string[] {
  const dropped = droppedReasoning === 0 ? [] : [`encrypted_reasoning_dropped; items=${droppedReasoning}`]
  return [...dropped, ...ignoredMembers(ignored)]
}

export function warningHeaders(plan: Plan): ExtraHeaders {
  return warningHeader(warningsOf(plan))
}
