/** Requests as coding agents send them, over every kind of worker. */
import { expect, test } from 'vitest'
import { rawAnswer, sseAnswer } from '../support/scripted-worker.ts'
import { accumulate, CHAT, COUNT, MESSAGES, openMessages, readEvents, VENDOR } from './messages-fleet.ts'
import { openGrpcMessages } from './messages-grpc-fleet.ts'

const BETAS = [
  'claude-code-20250219',
  'interleaved-thinking-2025-05-14',
  'context-management-2025-06-27',
  'prompt-caching-scope-2026-01-05',
  'effort-2025-11-24',
  'mcp-client-2026-09-15',
  'context-1m-2025-08-07',
  'never-heard-of-2027-01-01',
]
const HEADERS = {
  'anthropic-version': '2023-06-01',
  'anthropic-beta': BETAS.join(','),
  'x-app': 'cli',
  'x-claude-code-session-id': '5b0c8c1e-0000-4000-8000-000000000000',
  'x-stainless-lang': 'js',
  'x-stainless-retry-count': '0',
  'user-agent': 'claude-cli/2.1.330 (external, cli)',
}
const tool = (name: string, more: object = {}) => ({
  name,
  description: `Does what ${name} does. `.repeat(400),
  input_schema: { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties: {} },
  ...more,
})
const TEXT = 'You are an agent for software. '

/** A turn of a session in progress, with a body of typical size. */
function turn(more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    model: 'test-model',
    max_tokens: 32_000,
    stream: true,
    temperature: 1,
    system: [
      {
        type: 'text',
        text: 'x-anthropic-billing-header: cc_version=2.1.330.a1b; cc_entrypoint=cli; cch=0f3a1;',
      },
      { type: 'text', text: TEXT, cache_control: { type: 'ephemeral' } },
      { type: 'text', text: TEXT.repeat(700), cache_control: { type: 'ephemeral', ttl: '1h' } },
    ],
    tools: [
      tool('Read'),
      tool('Bash', { eager_input_streaming: true }),
      tool('Later', { defer_loading: true }),
      { type: 'web_search_20250305', name: 'web_search', max_uses: 8 },
    ],
    thinking: { type: 'adaptive', display: 'omitted' },
    output_config: { effort: 'high' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    metadata: { user_id: '{"device_id":"d","session_id":"s"}' },
    safeguards: { mode: 'on' },
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: '<system-reminder>today</system-reminder>' },
          { type: 'text', text: 'Go.' },
        ],
      },
      { role: 'system', content: 'The user is in a hurry.' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'text', text: 'Both.' },
          { type: 'tool_use', id: 'toolu_call_1', name: 'Read', input: { file_path: '/a' } },
          { type: 'tool_use', id: 'toolu_call_2', name: 'Bash', input: { command: 'ls' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_call_2', content: 'a b', is_error: false },
          {
            type: 'tool_result',
            tool_use_id: 'toolu_call_1',
            content: [{ type: 'text', text: 'the file' }],
            cache_control: { type: 'ephemeral' },
          },
        ],
      },
    ],
    ...more,
  }
}

const chunk = (delta: object, reason: string | null = null) =>
  JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })
const DONE = sseAnswer([
  chunk({ reasoning_content: 'hm' }),
  chunk({ content: 'Done.' }),
  chunk({}, 'stop'),
  '[DONE]',
])

test('messages-2026-11: a turn of an agent over a chat worker', async () => {
  const { post, workers } = await openMessages()
  workers[0].script(CHAT, DONE)
  expect(JSON.stringify(turn()).length).toBeGreaterThan(48_000)
  for (const thinking of [
    { type: 'adaptive', display: 'omitted' },
    { type: 'adaptive', display: 'updates' },
    { type: 'enabled', budget_tokens: 31_999 },
  ]) {
    const reply = await post('/v1/messages?beta=true', turn({ thinking }), HEADERS)
    expect(reply.status, await reply.clone().text()).toBe(200)
    const { content, stop_reason: reason } = accumulate(readEvents(await reply.text()))
    expect([content.at(-1)?.text, reason]).toEqual(['Done.', 'end_turn'])
    expect(content[0]).toMatchObject({ type: 'thinking', signature: '' })
  }
  const sent = workers[0].requestsTo(CHAT)[0]
  const body = sent.json() as { messages: Record<string, unknown>[]; tools: { function: { name: string } }[] }
  expect(body.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'tool'])
  expect(body.messages[1].content).toContain('The user is in a hurry.')
  expect(body.messages.slice(3).map(({ tool_call_id: id, content }) => [id, content])).toEqual([
    ['call_2', 'a b'],
    ['call_1', 'the file'],
  ])
  expect(body.tools.map(({ function: { name } }) => name)).toEqual(['Read', 'Bash'])
  const text = sent.body.toString()
  for (const word of ['billing', 'cache_control', 'safeguards', 'context_management'])
    expect(text).not.toContain(word)
  expect(body).toMatchObject({ max_tokens: 32_000, reasoning_effort: 'high' })
})

test('messages-2026-11: a turn of an agent is relayed to a vendor with its bytes, query, betas and session', async () => {
  const { post, workers } = await openMessages({ workers: [VENDOR] })
  workers[0].script(MESSAGES, rawAnswer('{}', { headers: { 'content-type': 'application/json' } }))
  const thinking = { type: 'thinking', thinking: '', signature: 'c2ln' }
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: [thinking, { type: 'text', text: 'b' }] },
    { role: 'user', content: 'c' },
    { role: 'system', content: 'd' },
  ]
  const body = JSON.stringify(turn({ messages }))
  await post('/v1/messages?beta=true', body, HEADERS)
  const [sent] = workers[0].requestsTo(MESSAGES)
  expect([sent.path, sent.body.toString()]).toEqual(['/v1/messages?beta=true', body])
  expect(sent.header('anthropic-beta')).toBe(BETAS.join(','))
})

test('messages-2026-11: a turn of an agent over gRPC', async () => {
  const { post, engineAnswers, asked } = await openGrpcMessages()
  await engineAnswers('<think>hm</think>Done.')
  const reply = await post('/v1/messages?beta=true', turn(), HEADERS)
  expect(reply.status, await reply.clone().text()).toBe(200)
  const { content } = accumulate(readEvents(await reply.text()))
  expect(content).toEqual([
    { type: 'thinking', thinking: '', signature: '' },
    { type: 'text', text: 'Done.' },
  ])
  const prompt = asked()[0].tokenized.originalText
  expect(prompt).not.toContain('billing')
  expect(prompt.indexOf('a b')).toBeLessThan(prompt.indexOf('the file'))
  expect(prompt).toContain('The user is in a hurry.')
})

test('messages-2026-11: 24 parallel token counts without max_tokens succeed', async () => {
  const { post, workers } = await openMessages({
    workers: [VENDOR],
    plugins: { limits: { maxConcurrentRequests: 64, queueSize: 0 } },
  })
  workers[0].script(
    COUNT,
    rawAnswer('{"input_tokens":42}', { headers: { 'content-type': 'application/json' } }),
  )
  const { max_tokens: _, stream: __, ...body } = turn()
  const ask = async () => (await post('/v1/messages/count_tokens?beta=true', body, HEADERS)).json()
  const counts = await Promise.all(Array.from({ length: 24 }, ask))
  expect(counts).toEqual(counts.map(() => ({ input_tokens: 42 })))
  const local = await openMessages()
  const counted = await Promise.all(
    Array.from({ length: 24 }, () => local.post('/v1/messages/count_tokens?beta=true', body, HEADERS)),
  )
  expect(counted.map(({ status }) => status)).toEqual(counted.map(() => 200))
  expect(local.workers[0].requests).toEqual([])
})

test('messages-2026-11: after an error event the agent repeats the request unstreamed with 32,000 tokens, and it succeeds', async () => {
  const { post, workers } = await openMessages()
  workers[0].once(CHAT, sseAnswer([chunk({ content: 'Do' }), { waitMs: 30 }, '{"error":{"message":"no"}}']))
  const broken = readEvents(await (await post('/v1/messages?beta=true', turn(), HEADERS)).text())
  expect(broken.at(-1)?.type).toBe('error')
  const { stream: _, ...whole } = turn({ max_tokens: 32_000 })
  const reply = await post('/v1/messages?beta=true', whole, { ...HEADERS, 'x-stainless-retry-count': '1' })
  expect(await reply.json()).toMatchObject({ type: 'message', stop_reason: 'end_turn' })
})

test('messages-2026-11: a key in x-api-key or authorization is accepted, and a 401 has x-should-retry false', async () => {
  const { post } = await openMessages({ plugins: { auth: { apiKey: 'right' } } })
  const status = async (headers: Record<string, string>) => {
    const reply = await post('/v1/messages?beta=true', turn({ stream: false }), { ...HEADERS, ...headers })
    return [reply.status, reply.headers.get('x-should-retry')]
  }
  expect(await status({ 'x-api-key': 'right' })).toEqual([200, null])
  expect(await status({ authorization: 'Bearer right' })).toEqual([200, null])
  expect(await status({ 'x-api-key': 'wrong' })).toEqual([401, 'false'])
})

test('messages-2026-11: model discovery is served without a redirect, and a 404 names the unknown model', async () => {
  const { gateway, post } = await openMessages({
    plugins: {
      'virtual-models': { models: { 'claude-sonnet-4-5': { targets: [{ model: 'test-model' }] } } },
    },
  })
  const reply = await fetch(`${gateway.url}/v1/models?limit=1000`, { headers: HEADERS, redirect: 'error' })
  const { data } = (await reply.json()) as { data: { id: string; type: string }[] }
  expect(data.filter(({ id }) => /claude|anthropic/.test(id))).toMatchObject([
    { id: 'claude-sonnet-4-5', type: 'model' },
  ])
  const missing = await post('/v1/messages?beta=true', turn({ model: 'claude-nope' }), HEADERS)
  const { error } = (await missing.json()) as { error: { type: string; message: string } }
  expect([missing.status, error.type]).toEqual([404, 'not_found_error'])
  expect(error.message).toContain('claude-nope')
})

const LATER = ['mcp__x__y', 'mcp__x__z', 'mcp__x__w'].map((name) => ({
  name,
  input_schema: { type: 'object', properties: {} },
  defer_loading: true,
}))
const reference = (tool_name?: unknown) => ({ type: 'tool_reference', tool_name })
const found = (content: unknown, more: object = {}) => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content, ...more }],
})
const searched = {
  role: 'assistant',
  content: [{ type: 'tool_use', id: 'toolu_1', name: 'Search', input: {} }],
}

test.each<[string, readonly object[], readonly string[]]>([
  ['one', [searched, found([reference('mcp__x__y')])], ['mcp__x__y']],
  [
    'several',
    [searched, found([reference('mcp__x__z'), reference('mcp__x__y')])],
    ['mcp__x__y', 'mcp__x__z'],
  ],
  [
    'one beside text',
    [searched, found([{ type: 'text', text: 'found' }, reference('mcp__x__w')])],
    ['mcp__x__w'],
  ],
  ['the same twice', [searched, found([reference('mcp__x__y'), reference('mcp__x__y')])], ['mcp__x__y']],
  ['of a tool that is not declared', [searched, found([reference('gone')])], []],
  ['without a name', [searched, found([reference()])], []],
  ['with a name that is not a string', [searched, found([reference({ a: 1 }), reference('__proto__')])], []],
  ['in an empty result', [searched, found([])], []],
  ['in a text', [searched, found('tool_reference mcp__x__y')], []],
  [
    'of an earlier turn',
    [
      searched,
      found([reference('mcp__x__y')]),
      { role: 'assistant', content: 'ok' },
      { role: 'user', content: 'go' },
    ],
    ['mcp__x__y'],
  ],
  [
    'of a search run by a vendor',
    [
      {
        role: 'assistant',
        content: [
          {
            type: 'server_tool_use',
            id: 'srvtoolu_1',
            name: 'tool_search_tool_regex',
            input: { query: 'y' },
          },
          {
            type: 'tool_search_tool_result',
            tool_use_id: 'srvtoolu_1',
            content: { type: 'tool_search_tool_search_result', tool_references: [reference('mcp__x__y')] },
          },
          { type: 'text', text: 'found' },
        ],
      },
      { role: 'user', content: 'go' },
    ],
    ['mcp__x__y'],
  ],
])('tools with defer_loading are offered once a reference names them: %s', async (_what, turns, names) => {
  const { post, workers } = await openMessages()
  workers[0].script(CHAT, DONE)
  const search = { name: 'Search', input_schema: { type: 'object' } }
  const messages = [{ role: 'user', content: 'a' }, ...turns]
  const reply = await post('/v1/messages?beta=true', turn({ tools: [search, ...LATER], messages }), HEADERS)
  expect(reply.status, await reply.text()).toBe(200)
  const { tools } = workers[0].requestsTo(CHAT)[0].json() as { tools: { function: { name: string } }[] }
  expect(tools.map(({ function: { name } }) => name)).toEqual(['Search', ...names])
})
