/** Images in tool results: vision models get the image, other models a note with type and size, and never base64. */
import { expect, test } from 'vitest'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { openFleet } from './fleet.ts'
import { openGrpcMessages } from './messages-grpc-fleet.ts'

const DATA = 'aGVsbG8='
const URL = `data:image/png;base64,${DATA}`
const NOTE = '[image: image/png, 5 bytes]'

const CLIENTS = {
  '/v1/chat/completions': {
    messages: [
      { role: 'user', content: 'look' },
      {
        role: 'assistant',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      {
        role: 'tool',
        tool_call_id: 'c',
        content: [{ type: 'image_url', image_url: { url: URL }, unseen: 5 }],
      },
    ],
  },
  '/v1/messages': {
    max_tokens: 64,
    messages: [
      { role: 'user', content: 'look' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'c',
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: DATA } }],
          },
        ],
      },
    ],
  },
  '/v1/responses': {
    input: [
      { role: 'user', content: 'look' },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: URL }] },
    ],
  },
}
const paths = Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]

async function sentFor(path: keyof typeof CLIENTS, spec: object, generations: object = {}) {
  const { workers, post } = await openFleet({
    workers: [{ spec: { ...spec } }],
    plugins: { messages: {}, responses: {}, chat: { chat: 'normalize' }, generations },
  })
  workers[0].script(CHAT, chatAnswer('seen'))
  const reply = await post(path, { model: 'test-model', ...CLIENTS[path] })
  expect(reply.status, await reply.text()).toBe(200)
  return workers[0].requestsTo(CHAT)[0].body.toString()
}

const SEEING = { models: [{ id: 'test-model', model_type: ['chat', 'vision'] }] }

test.each(paths)('%s: a model with unknown capabilities gets a note', async (path) => {
  const sent = await sentFor(path, {})
  expect(sent).toContain(NOTE)
  expect(sent).not.toContain(DATA)
})

test.each(paths)('%s: a vision model and a model of a cloud service get the image', async (path) => {
  const service = { runtime_type: 'external', provider: 'openai', apis: ['chat'], api_key: 'k' }
  for (const spec of [SEEING, service]) {
    const sent = await sentFor(path, spec)
    expect(sent).toContain(JSON.stringify(URL))
    expect(sent).not.toContain('unseen')
    expect(sent).not.toContain(NOTE)
  }
})

test('generations.toolImages overrides the detected capability', async () => {
  expect(await sentFor('/v1/messages', {}, { toolImages: 'send' })).toContain(DATA)
  expect(await sentFor('/v1/messages', SEEING, { toolImages: 'note' })).toContain(NOTE)
})

test('an engine over gRPC, which is text-only, gets a note', async () => {
  const { create, engineAnswers, asked } = await openGrpcMessages()
  await engineAnswers('seen')
  const reply = await create(CLIENTS['/v1/messages'])
  expect(reply.status, await reply.text()).toBe(200)
  expect(asked()[0].tokenized.originalText).toContain(NOTE)
})
