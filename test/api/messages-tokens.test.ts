/** count_tokens by the model's tokenizer, and the prompt tokens in the first event of a stream. */
import { expect, test } from 'vitest'
import { chatChunks, sseAnswer } from '../support/scripted-worker.ts'
import { CHAT, HELLO, openMessages, readEvents } from './messages-fleet.ts'

test('count_tokens and message_start report the same number', async () => {
  const { create, post, get, workers } = await openMessages({ plugins: { tokenizers: {} } })
  await post('/v1/tokenizers', { name: 'test-model', source: 'weir:sample' })
  const listed = async () => JSON.stringify(await (await get('/v1/tokenizers')).json())
  await expect.poll(listed, { timeout: 30_000 }).toContain('test-model')
  const body = {
    system: 'Be kind.',
    tools: [{ name: 'look', input_schema: { type: 'object' } }],
    messages: [{ role: 'user', content: 'What is the weather like today?' }],
  }
  const reply = await post('/v1/messages/count_tokens', { ...HELLO, ...body })
  const { input_tokens: count } = (await reply.json()) as { input_tokens: number }
  expect(reply.headers.get('x-weir-token-estimate')).toBeNull()
  expect(count).toBeGreaterThan(10)
  workers[0].script(CHAT, sseAnswer(chatChunks('test-model', ['Fine', ' so', ' far'])))
  const events = readEvents(await (await create({ ...body, stream: true })).text())
  expect(events[0]).toMatchObject({ type: 'message_start', message: { usage: { input_tokens: count } } })
  expect(events.at(-1)?.type).toBe('message_stop')
})
