/** POST /v1/responses/compact: a conversation as what the user said and a sealed summary of it. */
import {
  type ErrorFormat,
  Generations,
  type HistoryItem,
  type RequestContext,
  type RouteDefinition,
  Type,
} from '#kernel'
import { responsesErrors } from '../errors.ts'
import { newId, newItemId } from './item-ids.ts'
import { toTask } from './prompt/summary-task.ts'
import { isObject } from './read/fields.ts'
import { failures } from './route-failures.ts'
import { makePlan } from './run/plan.ts'
import { toWireUsage } from './run/reply-object.ts'
import { nowSec, readCreate, type ServeParts, tenantOf } from './run/serve-create.ts'
import { warningHeaders } from './run/warning-headers.ts'

export function compactRoute(parts: ServeParts, errors: ErrorFormat): RouteDefinition {
  return {
    method: 'POST',
    path: '/v1/responses/compact',
    access: 'api',
    errors,
    endpoint: 'responses',
    handler: (ctx) => compact(parts, ctx),
    docs: {
      summary: 'Compact a conversation into items that stand for it as input',
      tag: 'Responses',
      body: Type.Object(
        {
          model: Type.String({ minLength: 1 }),
          input: Type.Optional(Type.Unknown()),
          previous_response_id: Type.Optional(Type.Union([Type.String(), Type.Null()])),
          instructions: Type.Optional(Type.Union([Type.String(), Type.Null()])),
        },
        { additionalProperties: true },
      ),
      responses: {
        200: {
          description: 'Items to be sent back as they are.',
          schema: Type.Object({
            id: Type.String(),
            object: Type.Literal('response.compaction'),
            created_at: Type.Integer(),
            output: Type.Array(Type.Object({}, { additionalProperties: true })),
            usage: Type.Object({}, { additionalProperties: true }),
          }),
        },
        ...failures,
      },
    },
  }
}

async function compact(parts: ServeParts, ctx: RequestContext): Promise<void> {
  const body = ctx.bodyJson()
  if (!isObject(body)) throw responsesErrors.invalid_type('the body', 'a JSON object')
  const onlyPast = (body.input ?? null) === null && typeof body.previous_response_id === 'string'
  // Without new input the past is all there is to compact; the placeholder is never told.
  const input = onlyPast ? '-' : body.input
  const request = readCreate(parts, { ...body, input, stream: false, background: false, store: false })
  const tenant = tenantOf(ctx)
  const plan = await makePlan(parts, tenant, request)
  const context = onlyPast ? plan.context.slice(0, -1) : plan.context
  const { prompt } = plan.generation
  const messages = prompt.kind === 'chat' ? prompt.messages : []
  const said = onlyPast ? messages.slice(0, -1) : messages
  const answer = await parts.host.use(Generations).collect(ctx, toTask(plan.generation, said))
  const [choice] = answer.choices
  if (choice === undefined || choice.text === '') throw responsesErrors.worker_aborted()
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
        encrypted_content: parts.seal.seal(tenant, { text: choice.text }),
      },
    ],
    usage: toWireUsage(answer.usage),
  }
  ctx.json(200, reply, warningHeaders(plan))
}

function isFromUser({ type, role }: HistoryItem): boolean {
  return type === 'message' && role === 'user'
}
