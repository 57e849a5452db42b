/** The routes of the Messages format and their documentation. */
import type { RequestContext, RouteDefinition } from '#kernel'
import { BETA_QUERY, MESSAGES_HEADERS } from '#shared'
import { messagesErrorFormat } from '../error-format.ts'
import { messagesErrors } from '../errors.ts'
import { CountBody, CountResponse, MessageBody, MessageResponse } from '../wire.ts'
import { countTokens } from './count-tokens.ts'
import { type CreateParts, createMessage } from './create-message.ts'
import { TOOLS_HEADERS } from './gateway-tools.ts'

const TAG = 'Messages'
const PATH = '/v1/messages'

const shared = {
  access: 'api',
  errors: messagesErrorFormat,
  headers: ['x-api-key', ...MESSAGES_HEADERS, ...TOOLS_HEADERS],
  takesApiKeyHeader: true,
  requestIdPrefix: 'req_',
} as const

const failures: RouteDefinition['docs']['responses'] = {
  400: {
    description: 'The body is not a JSON object, a field is missing or invalid, or the prompt is too long.',
  },
  401: { description: 'No valid key in Authorization or x-api-key.' },
  404: { description: 'No worker serves the model.' },
  413: { description: 'The body is too large.' },
  429: { description: 'A limit of the gateway or of the worker was exceeded.' },
  502: { description: 'The worker could not be reached, or its response was cut off.' },
  503: { description: 'No worker of the model is ready.' },
  504: { description: 'The worker did not respond in time.' },
}

export function messagesRoutes(parts: CreateParts): RouteDefinition[] {
  return [
    {
      ...shared,
      method: 'POST',
      path: PATH,
      endpoint: 'messages',
      handler: (ctx) => createMessage(parts, ctx),
      docs: {
        summary: 'Create a message',
        tag: TAG,
        body: MessageBody,
        workerQuery: BETA_QUERY,
        responses: {
          200: {
            description: 'The message, or its events with `stream`.',
            schema: MessageResponse,
            streams: true,
          },
          ...failures,
        },
      },
    },
    {
      ...shared,
      method: 'POST',
      path: `${PATH}/count_tokens`,
      endpoint: 'count_tokens',
      handler: (ctx) => countTokens(parts, ctx),
      docs: {
        summary: 'Count the tokens of a prompt',
        tag: TAG,
        body: CountBody,
        workerQuery: BETA_QUERY,
        responses: {
          200: {
            description:
              'Counted by a worker or by the model’s tokenizer. With the header `x-weir-token-estimate: true` it is an estimate: a token for four bytes of text and tools.',
            schema: CountResponse,
          },
          ...failures,
        },
      },
    },
    ...(['GET', 'POST', 'DELETE'] as const).map(unknownRoute),
    {
      method: 'GET',
      path: '/api/hello',
      access: 'public',
      errors: messagesErrorFormat,
      handler: (ctx) => ctx.text(200, 'hello'),
      docs: {
        summary: 'Reachability check of agents',
        tag: TAG,
        responses: { 200: { description: 'The text `hello`.', contentType: 'text/plain' } },
      },
    },
  ]
}

/** Unknown paths below the route get their 404 in the envelope of the format. */
function unknownRoute(method: 'GET' | 'POST' | 'DELETE'): RouteDefinition {
  return {
    ...shared,
    method,
    path: `${PATH}/*`,
    handler: (ctx: RequestContext) => {
      throw messagesErrors.route_not_found(ctx.path)
    },
    docs: {
      summary: 'No such route',
      tag: TAG,
      isHidden: true,
      responses: { 404: { description: 'The route does not exist.' } },
    },
  }
}
