/**
 * A front format of your own: POST /talk/:model with plain text, and the answer streams back as plain text. Reasoning
 * stands in brackets, tool calls on lines of their own. It works over every kind of worker that the gateway can reach.
 */

import {
  definePlugin,
  type ErrorFormat,
  type GenerationEvent,
  type GenerationRequest,
  Generations,
  type RequestContext,
  Type,
  writeEvent,
} from 'weir-gateway'

/** Errors in the words of this format: a line that begins with `!`. */
const plainErrors: ErrorFormat = {
  name: 'PlainTalkError',
  schema: Type.String(),
  contentType: 'text/plain; charset=utf-8',
  body: (error) => `! ${error.message}\n`,
  lastEvents: (error) => `data: ! ${error.message}\n\n`,
}

export default definePlugin({
  manifest: {
    name: 'plain-talk',
    version: '0.1.0',
    description: 'Chats in plain text.',
    uses: [Generations],
    config: Type.Object(
      { maxTokens: Type.Integer({ minimum: 1, default: 512, description: 'Longest answer, in tokens.' }) },
      { additionalProperties: false },
    ),
  },
  register(host, config) {
    const handler = (ctx: RequestContext) => {
      let reply: ReturnType<RequestContext['sse']> | null = null
      const onEvent = (event: GenerationEvent) => {
        if (event.type === 'failed') return ctx.fail(event.error)
        // The head is sent with the first event, so that an earlier failure can set the status.
        reply ??= ctx.sse(200)
        const words = toWords(event)
        if (event.type === 'finished') reply.end('data: .\n\n')
        else if (words !== '') reply.write(writeEvent({ name: null, data: words }))
      }
      host.use(Generations).open(ctx, toRequest(ctx, config.maxTokens), {
        stream: true,
        listener: { onEvent },
      })
    }
    host.route({
      method: 'POST',
      path: '/talk/:model',
      access: 'api',
      errors: plainErrors,
      endpoint: 'talk',
      docs: {
        summary: 'Talk in plain text',
        tag: 'Talk',
        responses: {
          200: { description: 'The words, as server-sent events.', contentType: 'text/event-stream' },
        },
      },
      handler,
    })
  },
})

function toRequest(ctx: RequestContext, maxTokens: number): GenerationRequest {
  return {
    model: ctx.param('model'),
    prompt: { kind: 'chat', messages: [{ role: 'user', content: ctx.bodyBytes.toString('utf8') }] },
    tools: [],
    toolChoice: null,
    constraint: null,
    sampling: { maxTokens },
    reasoning: null,
    choices: 1,
    topLogprobs: null,
  }
}

function toWords(event: GenerationEvent): string {
  switch (event.type) {
    case 'text':
    case 'refusal':
    case 'tool_arguments':
      return event.delta
    case 'reasoning':
      return `(${event.delta})`
    case 'tool_call':
      return `\n> ${event.name} `
    default:
      return ''
  }
}
