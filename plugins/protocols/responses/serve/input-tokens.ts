/** POST /v1/responses/input_tokens: size of the prompt of a create request with the same body. */
import { type ErrorFormat, type RequestContext, type RouteDefinition, Type, tenantOf } from '#kernel'
import { countPromptTokens } from '#shared'
import { failures } from '../error-format.ts'
import { responsesErrors } from '../errors.ts'
import { CreateBody } from '../wire.ts'
import { makePlan, warningHeaders } from './run/plan.ts'
import { readCreate, type ServeParts } from './run/serve-create.ts'

export function inputTokensRoute(parts: ServeParts, errors: ErrorFormat): RouteDefinition {
  return {
    method: 'POST',
    path: '/v1/responses/input_tokens',
    access: 'api',
    errors,
    endpoint: 'responses',
    handler: (ctx) => inputTokens(parts, ctx),
    docs: {
      summary: 'Count the tokens of a prompt',
      tag: 'Responses',
      body: CreateBody,
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
  }
}

async function inputTokens(parts: ServeParts, ctx: RequestContext): Promise<void> {
  // Nothing is kept, so no conversation has to be locked.
  const request = readCreate(parts, ctx.bodyJson(), { stream: false, background: false, store: false })
  const plan = await makePlan(parts, tenantOf(ctx), request)
  const counted = countPromptTokens(parts, plan.generation)
  if (counted === null)
    throw responsesErrors.input_tokens_not_supported.with({ param: 'model' }, request.model)
  ctx.json(200, { object: 'response.input_tokens', input_tokens: await counted }, warningHeaders(plan))
}
