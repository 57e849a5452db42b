/** POST /v1/responses/compact: replaces a conversation by its user messages and an encrypted summary. */
import { type HistoryItem, isObject, type RequestContext, tenantOf } from '#kernel'
import { newId, newItemId } from '#shared'
import { toWireUsage } from './output/response-encoder.ts'
import type { Parts } from './parts.ts'
import { summarise } from './run/auto-compact.ts'
import { makePlan, warningHeaders } from './run/plan.ts'
import { nowSec, readCreate, requireStore } from './run/serve-create.ts'

/** Answers with the user's messages and a summary. */
export async function compact(parts: Parts, ctx: RequestContext): Promise<void> {
  const body = ctx.bodyJson()
  const onlyPast =
    isObject(body) && (body.input ?? null) === null && typeof body.previous_response_id === 'string'
  const request = readCreate(parts, body, {
    // Without new input the history alone is compacted; the placeholder is not sent to the model.
    ...(onlyPast && { input: '-' }),
    stream: false,
    background: false,
    store: false,
  })
  requireStore(parts, request, null)
  const tenant = tenantOf(ctx)
  const plan = await makePlan(parts, tenant, request)
  const context = onlyPast ? plan.context.slice(0, -1) : plan.context
  const { prompt } = plan.generation
  const messages = prompt.kind === 'chat' ? prompt.messages : []
  const said = onlyPast ? messages.slice(0, -1) : messages
  const { text, usage } = await summarise(parts, ctx, plan.generation, [said])
  const createdAt = nowSec()
  const reply = {
    id: newId('resp'),
    object: 'response.compaction',
    created_at: createdAt,
    output: [
      ...context.filter(isFromUser),
      {
        id: newItemId('compaction'),
        type: 'compaction',
        encrypted_content: parts.seal.seal(tenant, { text }),
      },
    ],
    usage: toWireUsage(usage),
  }
  ctx.json(200, reply, warningHeaders(plan))
}

function isFromUser({ type, role }: HistoryItem): boolean {
  return type === 'message' && role === 'user'
}
