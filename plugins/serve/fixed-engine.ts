/** An engine that always gives the same answer, as one chat or as a stream. */

import { apiErrorFormat, type RequestContext, type RouteDefinition } from '#kernel'
import type { KernelConfig } from '../../kernel/config/kernel-config.ts'
import type { Logger } from '../../kernel/contracts/log.ts'
import { openListener } from '../../kernel/http/listener.ts'

export const MODEL = 'warm-up'

const TOKENS = ['The', ' capital', ' of', ' that', ' country', ' is', ' Paris', '.']
const USAGE = { prompt_tokens: 40, completion_tokens: TOKENS.length, total_tokens: 40 + TOKENS.length }
const BASE = { id: 'chatcmpl-warm-up', created: 1, model: MODEL }

const WHOLE = JSON.stringify({
  ...BASE,
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: TOKENS.join('') },
      finish_reason: 'stop',
      logprobs: null,
    },
  ],
  usage: USAGE,
})
const STREAM = [
  ...TOKENS.map((content) =>
    chunk([{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }]),
  ),
  chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
  chunk([], USAGE),
  'data: [DONE]\n\n',
]

function chunk(choices: object[], usage?: object): string {
  return `data: ${JSON.stringify({ ...BASE, object: 'chat.completion.chunk', choices, usage })}\n\n`
}

export interface FixedEngine {
  readonly url: string
  close(): void
}

export async function openFixedEngine({ http }: KernelConfig, log: Logger): Promise<FixedEngine> {
  const { server, port } = await openListener({ host: '127.0.0.1', port: 0, routes: ROUTES }, http, log)
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

const common = {
  access: 'public',
  errors: apiErrorFormat,
  docs: { summary: '', tag: '', responses: {} },
} as const

const ROUTES: RouteDefinition[] = [
  { ...common, method: 'GET', path: '/health', handler: (ctx) => ctx.text(200, '') },
  {
    ...common,
    method: 'GET',
    path: '/v1/models',
    handler: (ctx) => ctx.json(200, { object: 'list', data: [{ id: MODEL, object: 'model' }] }),
  },
  {
    ...common,
    method: 'POST',
    path: '/v1/chat/completions',
    handler: (ctx) => {
      if (ctx.bodyBytes.includes('"stream":true')) sendStream(ctx)
      else ctx.send(200, 'application/json', WHOLE)
    },
  },
]

/** One event per turn, as an engine sends them. */
function sendStream(ctx: RequestContext): void {
  const stream = ctx.sse()
  let at = 0
  const next = () => {
    if (at === STREAM.length) stream.end()
    else {
      stream.write(STREAM[at++])
      setImmediate(next)
    }
  }
  next()
}
