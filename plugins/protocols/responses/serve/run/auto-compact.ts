/**
 * Compacts a prompt that is too long: above the client's threshold (`context_management`), or if the model's context would
 * overflow (`truncation: auto`). The current turn is never cut.
 */
import {
  type ChatMessage,
  GatewayError,
  type GenerationListener,
  type GenerationRequest,
  Generations,
  type GenerationUsage,
  type HistoryItem,
  type RequestContext,
} from '#kernel'
import {
  addUsage,
  answerErrors,
  countPromptTokens,
  estimateMessageTokens,
  estimatePromptTokens,
  newItemId,
} from '#shared'
import { wrongValue } from '../../errors.ts'
import type { Parts } from '../parts.ts'
import { hasForeignSummary, toTask, withoutCovered } from '../prompt/compaction.ts'
import { toMessages } from '../prompt/to-messages.ts'
import { toTurn, unsealerOf, workersOf } from './model-turn.ts'
import type { Compaction, Plan } from './plan.ts'

/** Share of the context that is kept free for an answer without a limit of its own. */
const ANSWER_SHARE = 0.125
/** Maximum share of the context for the input of one summary. */
const CHUNK_SHARE = 0.5
/** Longer histories are not compacted; the worker rejects them. */
const MAX_CHUNKS = 16

/** @returns the plan itself if it need not be compacted; synchronous if nothing has to be counted. @throws as a generation */
export function compacted(parts: Parts, ctx: RequestContext, plan: Plan): Plan | Promise<Plan> {
  if (plan.isAnswered) return plan
  const context = contextLength(parts, plan)
  const limit = limitOf(plan, context)
  // Calls that wait for an answer are part of the turn under way.
  if (!plan.isCompaction && (limit === null || plan.approvals.length > 0)) return plan
  const ready =
    limit === null || plan.isCompaction
      ? compactAll(parts, ctx, plan, context)
      : compactAbove(parts, ctx, plan, { limit, context })
  return ready.catch((error: unknown) => {
    void plan.lasting.lock?.release()
    throw error
  })
}

/** The smallest context length of the model's workers, in tokens; null if none reports it. */
function contextLength(parts: Parts, { request, isCompaction }: Plan): number | null {
  if (!isCompaction && !request.truncates && request.compactThreshold === null) return null
  let length: number | null = null
  const name = parts.host.balance.canonicalModel(request.model)
  for (const { models } of workersOf(parts, request)) {
    const reported = models.find(({ id }) => id === name)?.context_length
    if (reported !== undefined && reported > 0) length = Math.min(length ?? reported, reported)
  }
  return length
}

function limitOf({ request }: Plan, context: number | null): number | null {
  const { truncates, compactThreshold, sampling } = request
  if (!truncates || context === null) return compactThreshold
  const answer = Math.min(sampling.maxTokens ?? context * ANSWER_SHARE, context)
  return Math.min(compactThreshold ?? context, context - answer)
}

async function compactAbove(
  parts: Parts,
  ctx: RequestContext,
  plan: Plan,
  { limit, context }: { limit: number; context: number | null },
): Promise<Plan> {
  const { request, generation, lasting } = plan
  const { tenant } = lasting
  const tokens = (await countPromptTokens(parts, generation)) ?? estimatePromptTokens(generation)
  if (tokens <= limit) return plan
  const unsealer = unsealerOf(parts, tenant)
  const items = withoutCovered(lasting.context, unsealer)
  if (hasForeignSummary(items, unsealer)) return plan
  const cut = items.findLastIndex(({ type, role }) => type === 'message' && role === 'user')
  const head = items.slice(0, Math.max(0, cut))
  const last = head.at(-1)
  // Nothing is left to summarise.
  if (last === undefined || last.type === 'compaction') return plan
  const messages = headMessages(head, unsealer)
  const chunks =
    messages === null ? [] : toChunks(messages, (context ?? Number.POSITIVE_INFINITY) * CHUNK_SHARE)
  if (chunks.length === 0 || chunks.length > MAX_CHUNKS) return plan
  const compaction = await makeCompaction(parts, ctx, plan, chunks, last)
  const turn = toTurn(parts, tenant, request, [compaction.item, ...items.slice(cut)])
  const { droppedReasoning } = plan
  return { ...plan, ...turn, droppedReasoning, lasting: { ...lasting, compaction } }
}

/** The summary is all of the output. */
async function compactAll(
  parts: Parts,
  ctx: RequestContext,
  plan: Plan,
  context: number | null,
): Promise<Plan> {
  const { prompt } = plan.generation
  const messages = prompt.kind === 'chat' ? prompt.messages : []
  const last = plan.lasting.context.at(-2)
  if (last === undefined || messages.length === 0)
    return wrongValue('input', 'must have items before its trigger')
  const chunks = toChunks(messages, (context ?? Number.POSITIVE_INFINITY) * CHUNK_SHARE)
  if (chunks.length > MAX_CHUNKS) wrongValue('input', 'is too long for a compaction')
  const compaction = await makeCompaction(parts, ctx, plan, chunks, last)
  return { ...plan, isAnswered: true, lasting: { ...plan.lasting, compaction } }
}

/** @param last the last item that the summary covers */
async function makeCompaction(
  parts: Parts,
  ctx: RequestContext,
  { generation, lasting }: Plan,
  chunks: readonly ChatMessage[][],
  last: HistoryItem,
): Promise<Compaction> {
  const { text, usage } = await summarise(parts, ctx, generation, chunks)
  const item: HistoryItem = {
    id: newItemId('compaction'),
    type: 'compaction',
    encrypted_content: parts.seal.seal(lasting.tenant, { text, covers: last.id }),
    _summary: text,
    _covers: last.id,
  }
  return { item, usage }
}

/** Null if the current turn holds the result of an earlier call, so that the history cannot be split there. */
function headMessages(
  head: readonly HistoryItem[],
  unsealer: ReturnType<typeof unsealerOf>,
): readonly ChatMessage[] | null {
  try {
    return toMessages(null, head, unsealer).messages
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'missing_tool_output') return null
    throw error
  }
}

/** Results stay with their calls. @param most tokens of each chunk; a message is never split */
function toChunks(messages: readonly ChatMessage[], most: number): ChatMessage[][] {
  const chunks: ChatMessage[][] = []
  let tokens = Number.POSITIVE_INFINITY
  for (const message of messages) {
    const more = estimateMessageTokens(message)
    const chunk = chunks.at(-1)
    if (chunk === undefined || (tokens + more > most && message.role !== 'tool')) {
      chunks.push([message])
      tokens = more
    } else {
      chunk.push(message)
      tokens += more
    }
  }
  return chunks
}

/** Each summary is the first input of the next one. @throws worker_aborted (502) */
export async function summarise(
  { host }: Parts,
  ctx: RequestContext,
  generation: GenerationRequest,
  chunks: readonly (readonly ChatMessage[])[],
): Promise<{ text: string; usage: GenerationUsage | null }> {
  let text = ''
  let usage: GenerationUsage | null = null
  for (const chunk of chunks) {
    const before: ChatMessage[] = text === '' ? [] : [{ role: 'user', content: `Summary so far:\n${text}` }]
    const answer = await host.use(Generations).collect(ctx, toTask(generation, [...before, ...chunk]))
    text = answer.choices[0]?.text ?? ''
    if (text === '') throw answerErrors.worker_aborted()
    usage = addUsage(usage, answer.usage)
  }
  return { text, usage }
}

/** Adds the usage of the summary to that of the turn. */
export function withUsageOf({ usage }: Compaction, listener: GenerationListener): GenerationListener {
  return {
    onEvent: (event) =>
      listener.onEvent(
        event.type === 'finished' || event.type === 'failed'
          ? { ...event, usage: addUsage(event.usage ?? null, usage) }
          : event,
      ),
  }
}
