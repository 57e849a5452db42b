/** Routes of the responses API that take a create request. */
import {
  type ChatMessage,
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
import { CompactedResponse, CreateBody, PastBody, ResponseObject } from '../wire.ts'
import { acceptBackground } from './background/accept-background.ts'
import { toWireUsage } from './output/response-encoder.ts'
import type { Parts } from './parts.ts'
import type { CreateRequest } from './read/read-request.ts'
import { summarise } from './run/auto-compact.ts'
import { makePlan, type Plan, warningHeaders } from './run/plan.ts'
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
      requestIdPrefix: 'resp-',
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
        body: PastBody,
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
        body: PastBody,
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
  const { request, onlyPast } = readUnsent(parts, ctx.bodyJson())
  const plan = await makePlan(parts, tenantOf(ctx), request)
  const prompt = { kind: 'chat' as const, messages: messagesOf(plan, onlyPast) }
  const counted = countPromptTokens(parts, { ...plan.generation, prompt })
  if (counted === null)
    throw responsesErrors.input_tokens_not_supported.with({ param: 'model' }, request.model)
  ctx.json(200, { object: 'response.input_tokens', input_tokens: await counted }, warningHeaders(plan))
}

/** A request whose prompt is looked at and not answered: nothing is kept, so no conversation has to be locked. */
function readUnsent(parts: Parts, body: unknown): { request: CreateRequest; onlyPast: boolean } {
  const onlyPast =
    isObject(body) && (body.input ?? null) === null && typeof body.previous_response_id === 'string'
  const request = readCreate(parts, body, {
    // Without new input it is about the history alone; `messagesOf` leaves the placeholder out.
    ...(onlyPast && { input: '-' }),
    stream: false,
    background: false,
    store: false,
  })
  return { request, onlyPast }
}

function messagesOf({ generation: { prompt } }: Plan, onlyPast: boolean): readonly ChatMessage[] {
  const messages = prompt.kind === 'chat' ? prompt.messages : []
  return onlyPast ? messages.slice(0, -1) : messages
}

/** Replaces a conversation by its user messages and an encrypted summary. */
async function compact(parts: Parts, ctx: RequestContext): Promise<void> {
  const { request, onlyPast } = readUnsent(parts, ctx.bodyJson())
  requireStore(parts, request, null)
  const tenant = tenantOf(ctx)
  const plan = await makePlan(parts, tenant, request)
  const context = plan.lasting.context.slice(0, onlyPast ? -1 : undefined)
  const { text, usage } = await summarise(parts, ctx, plan.generation, [messagesOf(plan, onlyPast)])
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
