/** count_tokens by the model's tokenizer, and the prompt tokens in the first event of a stream. */
import { expect, test } from 'vitest'
import { type LoadedTokenizer, type TokenizerService, Tokenizers } from '#kernel'
import { definePlugin, Type } from '../../kernel/index.ts'
import { chatChunks, sseAnswer } from '../support/scripted-worker.ts'
import { CHAT, HELLO, NATIVE, openMessages, readEvents } from './messages-fleet.ts'

test('count_tokens and message_start report the same number', async () => {
  const { create, post, get, workers } = await openMessages({ plugins: { tokenizers: {} } })
  await post('/v1/tokenizers', { name: 'test-model', source: 'weir:sample' })
  const listed = async () => JSON.stringify(await (await get('/v1/tokenizers')).json())
  await expect.poll(listed).toContain('test-model')
  const body = {
    system: 'Be kind.',
    tools: [{ name: 'look', input_schema: { type: 'object' } }],
    messages: [{ role: 'user', content: 'What is the weather like today?' }],
  }
  const reply = await post('/v1/messages/count_tokens', { ...HELLO, ...body, container: 'c' })
  expect(reply.headers.get('x-weir-warning')).toBe('members_ignored; count=1; names="container"')
  const { input_tokens: count } = (await reply.json()) as { input_tokens: number }
  expect(reply.headers.get('x-weir-token-estimate')).toBeNull()
  expect(count).toBeGreaterThan(10)
  workers[0].script(CHAT, sseAnswer(chatChunks('test-model', ['Fine', ' so', ' far'])))
  const events = readEvents(await (await create({ ...body, stream: true })).text())
  expect(events[0]).toMatchObject({ type: 'message_start', message: { usage: { input_tokens: count } } })
  expect(events.at(-1)?.type).toBe('message_stop')
})

/** Tokenizers whose counts take as long as the test wants. */
function tokenizersOf(count: Promise<number>) {
  const tokenizer = { count: () => count } as Partial<LoadedTokenizer> as LoadedTokenizer
  const service = { find: () => tokenizer } as Partial<TokenizerService> as TokenizerService
  return definePlugin({
    manifest: {
      name: 'slow-tokenizers',
      version: '0.1.0',
      description: 'test',
      provides: [Tokenizers],
      config: Type.Object({}, { additionalProperties: false }),
    },
    register: (host) => host.provide(Tokenizers, service),
  })
}

test.each([
  ['of translated workers', [{}]],
  ['of a model that has a worker of the format too', [{}, { ...NATIVE, spec: { priority: 1 } }]],
])('pings do not wait for the count of a prompt: %s', async (_title, workers) => {
  const count = Promise.withResolvers<number>()
  const fleet = await openMessages({
    own: [tokenizersOf(count.promise)],
    messages: { pingMs: 40 },
    workers,
  })
  for (const worker of fleet.workers)
    worker.script(CHAT, sseAnswer([...chatChunks('test-model', ['Fine']).slice(0, 2), { hang: true }]))
  const reply = await fleet.create({ stream: true })
  let text = ''
  const pings = () => text.split('event: ping').length - 1
  for await (const part of reply.body ?? []) {
    text += Buffer.from(part).toString()
    if (pings() >= 4) break
  }
  expect(pings()).toBeGreaterThanOrEqual(4)
  expect(text).toContain('Fine')
})
