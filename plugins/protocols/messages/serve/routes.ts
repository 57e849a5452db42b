/** The routes of the messages format: what comes in and goes out. */

import type { RequestContext, RouteDefinition } from '#kernel'
import { MESSAGES_HEADERS } from '#shared'
import { messagesErrorFormat } from '../error-format.ts'
import { messagesErrors } from '../errors.ts'
import { CountBody, CountReply, MessageBody, MessageReply } from '../wire.ts'
import { countTokens } from './count-tokens.ts'
import { type CreateParts, createMessage } from './create-message.ts'
import { TOOLS_HEADERS } from './tools-here.ts'

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
  400: { description: 'The body is no JSON object, a field is missing or wrong, or the prompt is too long.' },
  401: { description: 'No valid key, neither as bearer token nor in x-api-key.' },
  404: { description: 'No worker serves the model.' },
  413: { description: 'The body is too large.' },
  429: { description: 'A limit of the gateway or of the worker.' },
  502: { description: 'The worker could not be reached, or its answer broke off.' },
  503: { description: 'No worker that serves the model is ready.' },
  504: { description: 'The worker took too long.' },
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
        responses: {
          200: {
            description: 'The message; with `stream`, its events.',
            schema: MessageReply,
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
        responses: {
          200: {
            description:
              'By a worker or the model’s tokenizer; with `x-weir-token-estimate: true`, an estimate: a token for four bytes of text and tools.',
            schema: CountReply,
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
        summary: 'Says that there is a gateway, for agents that look before they ask',
        tag: TAG,
        responses: { 200: { description: 'A word.', contentType: 'text/plain' } },
      },
    },
  ]
}

/** What is asked for below the path gets its 404 in the envelope that its client can read. */
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
      responses: { 404: { description: 'There is nothing here.' } },
    },
  }
}
