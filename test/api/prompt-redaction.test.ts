/** The redaction example keeps personal data from every worker: any route, any place of a request, stored or continued. */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { BUILD_LIMIT_MS } from '../../wasm-sdk/fixtures/built-modules.ts'
import type { TestGateway } from '../support/gateway.ts'
import { type RedactionGateway, startRedaction } from '../support/redaction-gateway.ts'
import type { TextWorkers, WorkerKind } from '../support/text-workers.ts'

let redaction: RedactionGateway
let gateway: TestGateway
let workers: TextWorkers

beforeAll(async () => {
  redaction = await startRedaction('examples/wasm-redact-request', 'OnPromptText')
  ;({ gateway, workers } = redaction)
  workers.said = { reasoning: ['thought of own@example.com'], text: ['said own@example.com'], arguments: [] }
}, BUILD_LIMIT_MS)

afterAll(() => redaction?.close())

type Json = Record<string, unknown>

const ADDRESS = /[\w.]+@\w+\.\w+/

let count = 0
/** Another one in each place, so that a failure names the place. */
function secret(place: string): string {
  return `about ${place}${count++}@example.com`
}

/** Without white space, as an argument or a title may be. */
const bare = (place: string) => `${place}${count++}@example.com`

async function post(path: string, body: Json, model: string, stream = false): Promise<Json> {
  const reply = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, model, stream }),
  })
  const text = await reply.text()
  if (reply.status !== 200) throw new Error(`${path} ${model}: ${reply.status} ${text}`)
  return stream ? { text } : JSON.parse(text)
}

beforeEach(() => {
  workers.received.length = 0
})

/** @param atLeast places that the worker received, redacted */
function checkReceived(from: string, atLeast: number): void {
  expect(workers.received.length, `${from} reached a worker`).toBeGreaterThan(0)
  for (const body of workers.received) {
    expect(ADDRESS.exec(body)?.[0], `${from}: ${body}`).toBeUndefined()
    expect(body.split('[email]').length - 1, `${from}: ${body}`).toBeGreaterThanOrEqual(atLeast)
  }
}

const schema = () => ({
  type: 'object',
  properties: { id: { type: 'string', description: secret('schema'), enum: [bare('enum')] } },
})
const callArguments = () => JSON.stringify({ id: bare('argument'), url: bare('argument') })
const chatTools = () => [
  { type: 'function', function: { name: 'look', description: secret('tool'), parameters: schema() } },
]
const chatCall = () => [
  { id: 'call_1', type: 'function', function: { name: 'look', arguments: callArguments() } },
]

const chatBody = () => ({
  messages: [
    { role: 'system', content: secret('system') },
    { role: 'user', content: [{ type: 'text', text: bare('part') }] },
    { role: 'assistant', content: secret('turn'), tool_calls: chatCall() },
    { role: 'tool', tool_call_id: 'call_1', content: bare('result') },
    { role: 'user', content: secret('question') },
  ],
  tools: chatTools(),
})
/** Members that only workers of the format know. */
const wholeChatBody = () => ({
  ...chatBody(),
  messages: [
    ...chatBody().messages,
    { role: 'assistant', content: null, refusal: bare('refusal'), reasoning_content: bare('reasoning') },
    {
      role: 'user',
      name: bare('participant'),
      content: [{ type: 'unknown_part', unknown: bare('unknown') }],
    },
  ],
  prediction: { type: 'content', content: bare('prediction') },
  chat_template_kwargs: { about: bare('template') },
})

const messagesBody = () => ({
  max_tokens: 9_000,
  system: [{ type: 'text', text: secret('system') }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: bare('text') },
        {
          type: 'document',
          title: bare('title'),
          context: bare('context'),
          source: { type: 'text', media_type: 'text/plain', data: bare('document') },
        },
        {
          type: 'search_result',
          title: bare('found'),
          source: 'https://x.example',
          content: [{ type: 'text', text: bare('hit') }],
        },
      ],
    },
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: { id: bare('input') } }],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: bare('result') }] },
        { type: 'text', text: secret('question') },
      ],
    },
  ],
  tools: [{ name: 'look', description: secret('tool'), input_schema: schema() }],
})

const responsesBody = () => ({
  instructions: secret('instructions'),
  input: [
    { role: 'user', content: [{ type: 'input_text', text: bare('text') }] },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: callArguments() },
    { type: 'function_call_output', call_id: 'call_1', output: bare('result') },
    { role: 'user', content: secret('question') },
  ],
  tools: [{ type: 'function', name: 'look', description: secret('tool'), parameters: schema() }],
})

const CHATTERS: readonly WorkerKind[] = ['relayed', 'messages', 'responses', 'grpc']
const COMPLETERS: readonly WorkerKind[] = ['relayed', 'generate', 'grpc']

const CASES: readonly {
  path: string
  body: () => Json
  kinds: readonly WorkerKind[]
  places: number
  streams?: false
}[] = [
  { path: '/v1/chat/completions', body: chatBody, kinds: CHATTERS, places: 9 },
  { path: '/v1/chat/completions', body: wholeChatBody, kinds: ['relayed'], places: 15 },
  { path: '/v1/messages', body: messagesBody, kinds: CHATTERS, places: 9 },
  { path: '/v1/messages/count_tokens', body: messagesBody, kinds: ['messages'], places: 9, streams: false },
  { path: '/v1/responses', body: responsesBody, kinds: CHATTERS, places: 8 },
  { path: '/v1/responses/compact', body: responsesBody, kinds: CHATTERS, places: 6, streams: false },
  { path: '/v1/completions', body: () => ({ prompt: bare('prompt') }), kinds: COMPLETERS, places: 1 },
  {
    path: '/v1/completions',
    body: () => ({ prompt: bare('prompt'), suffix: bare('suffix') }),
    kinds: ['relayed'],
    places: 2,
  },
  { path: '/generate', body: () => ({ text: bare('text') }), kinds: COMPLETERS, places: 1 },
  {
    path: '/v1/embeddings',
    body: () => ({ input: [bare('input'), secret('input')] }),
    kinds: ['relayed'],
    places: 2,
    streams: false,
  },
  {
    path: '/v1/classify',
    body: () => ({ input: bare('input') }),
    kinds: ['relayed'],
    places: 1,
    streams: false,
  },
  ...['/rerank', '/v1/rerank'].map((path) => ({
    path,
    body: () => ({ query: bare('query'), documents: [bare('document'), secret('document')] }),
    kinds: ['relayed'] as const,
    places: 3,
    streams: false as const,
  })),
]

test.each(
  CASES.flatMap(({ kinds, streams, ...one }) =>
    kinds.flatMap((kind) =>
      [false, ...(streams === false ? [] : [true])].map((stream) => ({ ...one, kind, stream })),
    ),
  ),
)('$path of $kind, streamed: $stream', async ({ path, body, kind, stream, places }) => {
  await post(path, body(), kind, stream)
  checkReceived(`${path} of ${kind}`, places)
})

test.each(CHATTERS)(
  '%s: stored turns, conversations and background work',
  async (kind) => {
    const first = await post('/v1/responses', { ...responsesBody(), store: true }, kind)
    const next = { input: secret('next'), previous_response_id: first.id, store: true }
    await post('/v1/responses', next, kind)
    await post('/v1/responses', next, kind, true)
    const conversation = await post('/v1/conversations', { items: responsesBody().input }, kind)
    await post('/v1/responses', { input: bare('next'), conversation: conversation.id }, kind)
    const { id } = await post('/v1/responses', { ...responsesBody(), background: true, store: true }, kind)
    await vi.waitFor(
      async () => {
        const job = (await (await fetch(`${gateway.url}/v1/responses/${id}`)).json()) as Json
        expect(job.status).toBe('completed')
      },
      { timeout: 60_000, interval: 20 },
    )
    checkReceived(kind, 3)
    // The store keeps what the client sent.
    const items = await (await fetch(`${gateway.url}/v1/responses/${first.id}/input_items`)).text()
    expect(items).toMatch(ADDRESS)
  },
  90_000,
)
