/** Routes of stored responses: read, follow, list the input, cancel, delete. */
import {
  type ErrorFormat,
  type HistoryItem,
  queryError,
  type RequestContext,
  type ResponseRecord,
  type RouteDefinition,
  Type,
  tenantOf,
} from '#kernel'
import { BETA_QUERY, includeNames, toClientItems } from '#shared'
import { failures } from '../../error-format.ts'
import { responsesErrors, shown } from '../../errors.ts'
import { DeletedResponse, ItemList, ResponseObject } from '../../wire.ts'
import { cancel } from '../background/job-ends.ts'
import { storedResponse } from '../output/response-encoder.ts'
import type { Parts } from '../parts.ts'
import { readInclude } from '../read/read-request.ts'
import { isRunning } from '../run/response-record.ts'
import { ResponseFollower } from './follow-response.ts'

const PATH = '/v1/responses/:response_id'
const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const INCLUDE = Type.Optional(Type.Array(Type.String()))

export function storedRoutes(parts: Parts, errors: ErrorFormat): RouteDefinition[] {
  const shared = { access: 'api', errors, endpoint: 'responses' } as const
  const tag = 'Responses'
  return [
    {
      ...shared,
      method: 'GET',
      path: PATH,
      handler: (ctx) => showResponse(parts, ctx),
      docs: {
        summary: 'Read a stored response, or follow its events again',
        tag,
        query: {
          ...BETA_QUERY,
          include: INCLUDE,
          stream: Type.Optional(
            Type.Boolean({ description: 'Send events, also while the response is in progress.' }),
          ),
          include_obfuscation: Type.Optional(
            Type.Boolean({
              description: 'Accepted from clients that know it: stored events have no padding.',
            }),
          ),
          starting_after: Type.Optional(
            Type.Integer({ minimum: 0, description: 'Only events numbered higher; with `stream`.' }),
          ),
        },
        responses: {
          200: { description: 'The response.', schema: ResponseObject, streams: true },
          ...failures,
        },
      },
    },
    {
      ...shared,
      method: 'DELETE',
      path: PATH,
      handler: (ctx) => deleteResponse(parts, ctx),
      docs: {
        summary: 'Delete a stored response',
        tag,
        responses: { 200: { description: 'Deleted.', schema: DeletedResponse }, ...failures },
      },
    },
    {
      ...shared,
      method: 'POST',
      path: `${PATH}/cancel`,
      readsBody: false,
      handler: (ctx) => cancelResponse(parts, ctx),
      docs: {
        summary: 'Cancel a background response',
        tag,
        responses: { 200: { description: 'The response, cancelled.', schema: ResponseObject }, ...failures },
      },
    },
    {
      ...shared,
      method: 'GET',
      path: `${PATH}/input_items`,
      handler: (ctx) => listInput(parts, ctx),
      docs: {
        summary: "List the items of a response's own input",
        tag,
        query: {
          ...BETA_QUERY,
          limit: Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT }),
          order: Type.Enum(['asc', 'desc'], { default: 'desc' }),
          after: Type.Optional(Type.String({ description: 'Only items behind this one.' })),
          include: INCLUDE,
        },
        responses: { 200: { description: 'Items.', schema: ItemList }, ...failures },
      },
    },
  ]
}

/** @throws response_not_found (404), for another tenant's too */
async function findResponse(parts: Parts, ctx: RequestContext): Promise<ResponseRecord> {
  const id = ctx.param('response_id')
  const record = await parts.history?.responses.get(tenantOf(ctx), id)
  if (record === undefined) throw responsesErrors.response_not_found(shown(id))
  return record
}

async function showResponse(parts: Parts, ctx: RequestContext): Promise<void> {
  checkInclude(ctx)
  const stream = ctx.queryParam('stream')
  const after = ctx.queryParam('starting_after')
  const isStream = stream === 'true' || stream === '1'
  if (after !== null && !isStream) throw queryError('starting_after', 'needs stream=true')
  const record = await findResponse(parts, ctx)
  if (isStream) await new ResponseFollower(parts, ctx, record.id, Number(after ?? -1)).run()
  else ctx.json(200, storedResponse(record))
}

function checkInclude(ctx: RequestContext): void {
  readInclude(includeNames(new URLSearchParams(ctx.query)))
}

async function deleteResponse(parts: Parts, ctx: RequestContext): Promise<void> {
  const record = await findResponse(parts, ctx)
  const tenant = tenantOf(ctx)
  if (isRunning(record)) await cancel(parts, tenant, record)
  const isGone = await parts.history?.responses.delete(tenant, record.id)
  if (isGone !== true) throw responsesErrors.response_not_found(record.id)
  ctx.json(200, { id: record.id, object: 'response.deleted', deleted: true })
}

async function cancelResponse(parts: Parts, ctx: RequestContext): Promise<void> {
  const record = await findResponse(parts, ctx)
  if (record.facts.connectionMode === 'grpc') throw responsesErrors.cancellation_not_supported()
  if (record.status === 'cancelled') {
    ctx.json(200, storedResponse(record))
    return
  }
  rejectEnded(record)
  const ended = await cancel(parts, tenantOf(ctx), record)
  if (ended === undefined) throw responsesErrors.response_not_found(record.id)
  // It may have ended meanwhile.
  if (ended.status !== 'cancelled') rejectEnded(ended)
  ctx.json(200, storedResponse(ended))
}

function rejectEnded({ status }: ResponseRecord): void {
  if (status === 'failed') throw responsesErrors.response_already_failed()
  if (status === 'completed' || status === 'incomplete') throw responsesErrors.response_already_completed()
}

async function listInput(parts: Parts, ctx: RequestContext): Promise<void> {
  checkInclude(ctx)
  const limit = Number(ctx.queryParam('limit') ?? DEFAULT_LIMIT)
  const { input } = await findResponse(parts, ctx)
  const items: HistoryItem[] = toClientItems(input)
  if (ctx.queryParam('order') !== 'asc') items.reverse()
  const after = ctx.queryParam('after')
  const begin = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1
  if (after !== null && begin === 0)
    throw responsesErrors.invalid_cursor.with({ param: 'after' }, shown(after))
  const data = items.slice(begin, begin + limit)
  ctx.json(200, {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: begin + limit < items.length,
  })
}
