/** A background response is accepted: everything checked, stored, queued, and only then answered. */

import { isObject, type JsonObject, type RequestContext, type ResponseRecord, tenantOf } from '#kernel'
import { newId } from '#shared'
import { responsesErrors } from '../../errors.ts'
import { ResponseEncoder, replyText } from '../output/response-encoder.ts'
import type { Parts } from '../parts.ts'
import { requireOpened, type TextSeal } from '../prompt/sealed-text.ts'
import type { CreateRequest } from '../read/read-request.ts'
import { checkTools } from '../run/open-turn.ts'
import { makePlan, warningHeaders } from '../run/plan.ts'
import { nowSec, readCreate, requireStore } from '../run/serve-create.ts'

/** @throws errors of the request (400, 404), background_queue_full (429), storage_unavailable (503), storage_quota_exceeded (507) */
export async function acceptBackground(
  parts: Parts,
  ctx: RequestContext,
  request: CreateRequest,
  body: JsonObject,
): Promise<void> {
  const { history, config, seal } = parts
  if (history === undefined) throw responsesErrors.background_not_supported.with({ param: 'background' })
  requireStore(parts, request, null)
  const tenant = tenantOf(ctx)
  const limit = config.background.maxWaitingPerTenant
  if ((await history.queue.waiting(tenant, limit)) >= limit) {
    const options = { headers: ['retry-after', '5'], code: 'queue_full' }
    throw responsesErrors.background_queue_full.with(options, limit)
  }
  await history.checkQuota(tenant, ctx.bodyBytes.length)
  // Checked now; the history is read again when its turn comes, and only then is the conversation locked.
  const plan = await makePlan(parts, tenant, { ...request, store: false })
  checkTools(parts, plan)
  const id = newId('resp')
  const createdAtSec = nowSec()
  const members = new ResponseEncoder({ id, createdAtSec }, request.echo).members('queued')
  const record: ResponseRecord = {
    id,
    createdAtSec,
    status: 'queued',
    reply: JSON.parse(`{${members}}`) as JsonObject,
    input: plan.lasting.input,
    output: [],
    previousResponseId: request.previousResponseId,
    conversationId: request.conversationId,
    facts: {
      body: keptBody(seal, tenant, body),
      role: ctx.identity?.role ?? null,
      keyId: ctx.identity?.keyId ?? null,
    },
  }
  await history.responses.create(tenant, record, true)
  ctx.send(200, 'application/json', replyText(members, '[]'), warningHeaders(plan))
}

/** Credentials of tool servers are kept sealed, and no longer than the work waits. */
function keptBody(seal: TextSeal, tenant: string, body: JsonObject): JsonObject {
  const { input: _, tools, ...rest } = body
  const hasSecrets =
    Array.isArray(tools) &&
    tools.some((tool) => isObject(tool) && (tool.authorization !== undefined || tool.headers !== undefined))
  if (!hasSecrets) return { ...rest, tools, input: '-' }
  return { ...rest, _sealedTools: seal.seal(tenant, { text: JSON.stringify(tools) }), input: '-' }
}

/** The request that was accepted. @throws when it cannot be read any more, as with another key */
export function acceptedRequest(parts: Parts, tenant: string, { facts }: ResponseRecord): CreateRequest {
  const { _sealedTools: sealed, ...body } = facts.body as JsonObject
  if (typeof sealed !== 'string') return readCreate(parts, body)
  const { text } = requireOpened(parts.seal.open(tenant, sealed))
  return readCreate(parts, { ...body, tools: JSON.parse(text) })
}
