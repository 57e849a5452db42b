/** Function names and call ids that a cloud service rejects are replaced upstream, and clients see their own. */
import { expect, test } from 'vitest'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { MESSAGES, messageSays } from '../support/messages-script.ts'
import { NATIVE, nativeAnswer } from '../support/responses-script.ts'
import type { Answer, RecordedRequest, Script } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const NAME = `mcp__files__${'read_'.repeat(14)}`
const ID = 'functions.read:0'
const RULE = /^[A-Za-z0-9_-]{1,64}$/
type Json = Record<string, unknown>

const CLIENTS = {
  chat: {
    path: '/v1/chat/completions',
    body: {
      tools: [{ type: 'function', function: { name: NAME, parameters: { type: 'object' } } }],
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          tool_calls: [{ id: ID, type: 'function', function: { name: NAME, arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: ID, content: 'x' },
      ],
    },
  },
  messages: {
    path: '/v1/messages',
    body: {
      max_tokens: 64,
      tools: [{ name: NAME, input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: ID, name: NAME, input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: ID, content: 'x' }] },
      ],
    },
  },
  responses: {
    path: '/v1/responses',
    body: {
      tools: [{ type: 'function', name: NAME, parameters: { type: 'object' } }],
      input: [
        { role: 'user', content: 'hi' },
        { type: 'function_call', call_id: ID, name: NAME, arguments: '{}' },
        { type: 'function_call_output', call_id: ID, output: 'x' },
      ],
    },
  },
} as const

/** Calls the first offered tool. */
function calling(toScript: (name: string) => Script): (request: RecordedRequest) => Answer | Promise<Answer> {
  return (request) => {
    const { tools } = request.json() as { tools: { name?: string; function?: { name: string } }[] }
    const script = toScript(tools[0].function?.name ?? String(tools[0].name))
    return typeof script === 'function' ? script(request) : script
  }
}

const WORKERS = {
  chat: {
    route: CHAT,
    spec: { runtime_type: 'external', provider: 'openai', apis: ['chat'] },
    script: calling((name) => chatAnswer({ tool_calls: [{ id: 'call_9', name, arguments: '{}' }] })),
  },
  responses: {
    route: NATIVE,
    spec: { runtime_type: 'external', provider: 'openai', apis: ['responses'] },
    script: calling((name) =>
      nativeAnswer({
        output: [{ id: 'fc', type: 'function_call', call_id: 'call_9', name, arguments: '{}' }],
      }),
    ),
  },
  messages: {
    route: MESSAGES,
    spec: { runtime_type: 'external', provider: 'anthropic', apis: ['messages'] },
    script: calling((name) => messageSays({ call: { id: 'call_9', name, input: {} } })),
  },
} as const

test.each([
  ['chat', 'responses'],
  ['chat', 'messages'],
  ['messages', 'chat'],
  ['messages', 'responses'],
  ['responses', 'chat'],
  ['responses', 'messages'],
  ['responses', 'responses'],
] as const)('a %s client over a service with the %s format', async (client, service) => {
  const { route, spec, script } = WORKERS[service]
  const fleet = await openFleet({
    workers: [{ spec: { ...spec, api_key: 'k' } }],
    plugins: { messages: {}, responses: {} },
  })
  fleet.workers[0].script(route, script)
  const { path, body } = CLIENTS[client]
  const reply = await fleet.post(path, { model: 'test-model', ...body })
  const text = await reply.text()
  expect(reply.status, text).toBe(200)
  expect(text).toContain(JSON.stringify(NAME))
  const sent = fleet.workers[0].requestsTo(route)[0].json()
  expect(new Set(valuesOf(sent, ['name']))).toEqual(new Set([expect.stringMatching(RULE)]))
  const ids = valuesOf(sent, ['call_id', 'tool_call_id', 'tool_use_id', 'id'])
  expect(ids).toHaveLength(2)
  expect(new Set(ids).size).toBe(1)
  expect(ids[0]).toMatch(RULE)
})

/** Values of the given members anywhere in a body. */
function valuesOf(value: unknown, names: readonly string[]): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value as Json).flatMap(([name, member]) => [
    ...(names.includes(name) && typeof member === 'string' ? [member] : []),
    ...valuesOf(member, names),
  ])
}
