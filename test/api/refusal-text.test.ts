/** Validation messages name the violated limit, not the structure of the schema. */
import { afterEach, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { newDirectory } from './responses/responses-fleet.ts'

let gateway: TestGateway | null = null
afterEach(async () => {
  await gateway?.stop()
  gateway = null
})

async function refusal(path: string, body: object): Promise<string> {
  gateway ??= await startGateway({
    plugins: {
      auth: {},
      chat: { validate: 'full' },
      messages: {},
      responses: {},
      conversations: {},
      storage: { dir: newDirectory() },
      history: {},
      workers: {},
    },
  })
  const reply = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(reply.status).toBe(400)
  return ((await reply.json()) as { error: { message: string } }).error.message
}

const chat = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
const rank = { model: 'm', query: 'q', documents: ['a'] }
const worker = { url: 'http://127.0.0.1:1' }

test.each<[string, object, string]>([
  ['/v1/chat/completions', { ...chat, temperature: 9 }, "field 'temperature' must be <= 2 (got 9)"],
  ['/v1/chat/completions', { ...chat, top_p: 0 }, "field 'top_p' must be > 0 (got 0)"],
  ['/v1/chat/completions', { ...chat, n: 'two' }, 'field \'n\' must be an integer (got "two")'],
  ['/v1/chat/completions', { ...chat, messages: [] }, "field 'messages' must not be empty"],
  [
    '/v1/chat/completions',
    { ...chat, stop: ['a', 'b', 'c', 'd', 'e'] },
    "field 'stop' must have at most 4 items (got an array of 5 items)",
  ],
  ['/rerank', { ...rank, top_k: 0 }, "field 'top_k' must be >= 1 (got 0)"],
  ['/rerank', { ...rank, documents: [] }, "field 'documents' must not be empty"],
  ['/workers', { ...worker, priority: -1 }, "field 'priority' must be >= 0 (got -1)"],
  ['/workers', { ...worker, cost: 'low' }, 'field \'cost\' must be a number (got "low")'],
  [
    '/workers',
    { ...worker, api_key: 'my secret key' },
    'field \'api_key\' must match pattern "^[\\x21-\\x7e]+$"',
  ],
  ['/v1/messages', { ...chat, max_tokens: 'few' }, 'max_tokens: must be an integer >= 0 (got "few")'],
  ['/v1/responses', { model: 'm', input: 'x', stream: 'yes' }, '\'stream\' must be a boolean (got "yes")'],
  ['/v1/conversations', { items: 'x' }, 'items must be an array (got "x")'],
  ['/workers', { ...worker, models: 'm' }, 'field \'models\' must be an array (got "m")'],
])('POST %s with %j is rejected with the violated rule', async (path, body, message) => {
  expect(await refusal(path, body)).toBe(message)
})
