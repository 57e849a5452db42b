/** Routes of the responses API that take a create request. */
import {
  type ErrorFormat,
  type HistoryItem,
  isObject,
  type JsonObject,
  type RequestContext,
  type RouteDefinition,
  Type,
  tenantOf,
} from '#kernel'
import { BETA_QUERY, countPromptTokens, keepSourceTexts, newId, newItemId } from '#shared'
import { failures } from '../error-format.ts'
import { responsesErrors } from '../errors.ts'
import { CompactBody, CompactedResponse, CreateBody, ResponseObject } from '../wire.ts'
import { acceptBackground } from './background/accept-background.ts'
import { toWireUsage } from './output/response-encoder.ts'
import type { Parts } from './parts.ts'
import { summarise } from './run/auto-compact.ts'
import { makePlan, warningHeaders } from './run/plan.ts'
import { nowSec, readCreate, requireStore, serveCreate } from './run/serve-create.ts'

const PATH = '/v1/responses'

/** @param onQueued called when a background response waits */
export function createRoutes(
  parts: Parts,
  errors: ErrorFormat,
  onQueued: (tenant: string) => void,
): RouteDefinition[] {
  const shared = { method: 'POST', access: 'api', errors, endpoint: 'responses' } as const
  const tag = 'Responses'
  return [
    {
      ...shared,
      path: PATH,
      requestIdPrefix: 'req-',
      handler: (ctx) => create(parts, ctx, onQueued),
      docs: {
        summary: 'Create a response',
        tag,
        body: CreateBody,
        workerQuery: BETA_QUERY,
        responses: {
          200: {
            description: 'The response; with `stream`, server-sent events.',
            schema: ResponseObject,
            streams: true,
          },
          ...failures,
        },
      },
    },
    {
      ...shared,
      path: `${PATH}/compact`,
      handler: (ctx) => compact(parts, ctx),
      docs: {
        summary: 'Compact a conversation into items that stand for it as input',
        tag,
        body: CompactBody,
        workerQuery: BETA_QUERY,
        responses: {
          200: { description: 'Items to be sent back as they are.', schema: CompactedResponse },
          ...failures,
        },
      },
    },
    {
      ...shared,
      path: `${PATH}/input_tokens`,
      handler: (ctx) => inputTokens(parts, ctx),
      docs: {
        summary: 'Count the tokens of a prompt',
        tag,
        body: CreateBody,
        workerQuery: BETA_QUERY,
        responses: {
          200: {
            description: 'By the tokenizer of the model. Tools of tool servers are not counted.',
            schema: Type.Object({
              object: Type.Literal('response.input_tokens'),
              input_tokens: Type.Integer(),
            }),
          },
          ...failures,
        },
      },
    },
  ]
}

function create(parts: Parts, ctx: RequestContext, onQueued: (tenant: string) => void): void | Promise<void> {
  keepSourceTexts(ctx.bodyBytes, ctx.bodyJson(), ['tools', '*', 'parameters'])
  const request = readCreate(parts, ctx.bodyJson())
  if (!request.background) return serveCreate(parts, ctx, request)
  return acceptBackground(parts, ctx, request, ctx.bodyJson() as JsonObject).then(() =>
    onQueued(tenantOf(ctx)),
  )
}

async function inputTokens(parts: Parts, ctx: RequestContext): Promise<void> {
  // Nothing is kept, so no conversation has to be locked.
  const request = readCreate(parts, ctx.bodyJson(), { stream: false, background: false, store: false })
  const plan = await makePlan(parts, tenantOf(ctx), request)
  const counted = countPromptTokens(parts, plan.generation)
  if (counted === null)
    throw responsesErrors.input_tokens_not_supported.with({ param: 'model' }, request.model)
  ctx.json(200, { object: 'response.input_tokens', input_tokens: await counted }, warningHeaders(plan))
}

/** Replaces a conversation by its user messages and an encrypted summary. */
async function compact(parts: Parts, ctx: RequestContext): Promise<void> {
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
  const context = plan.lasting.context.slice(0, onlyPast ? -1 : undefined)
  const { prompt } = plan.generation
  const messages = prompt.kind === 'chat' ? prompt.messages : []
  const said = onlyPast ? messages.slice(0, -1) : messages
  const { text, usage } = await summarise(parts, ctx, plan.generation, [said])
  const response = {
    id: newId('resp'),
    object: 'response.compaction',
    created_at: nowSec(),
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
  ctx.json(200, response, warningHeaders(plan))
}

function isFromUser({ type, role }: HistoryItem): boolean {
  return type === 'message' && role === 'user'
}
