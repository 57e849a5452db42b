/** Event streams disable buffering by proxies in front of the gateway. */
import { expect, test } from 'vitest'
import { jsonAnswer, sseAnswer } from '../support/scripted-worker.ts'
import { HELLO } from './messages-fleet.ts'
import { chatAnswer, chunk, openResponses, type ResponseJson } from './responses/responses-fleet.ts'

const model = 'test-model'
const messages = [{ role: 'user', content: 'hi' }]

async function open() {
  return await openResponses(chatAnswer('hello'), {
    plugins: { messages: {}, responses: { background: { pollMs: 50 } } },
  })
}

const bufferingOf = async (reply: Response) => {
  await reply.text()
  return [reply.status, reply.headers.get('content-type'), reply.headers.get('x-accel-buffering')]
}
const streamed = (type: string) => [200, type, 'no']
const GENERATED = 'text/event-stream; charset=utf-8'

test.each([
  ['/v1/chat/completions', { messages }],
  ['/v1/completions', { prompt: 'hi' }],
  ['/generate', { text: 'hi' }],
])('a relayed stream of %s has the header once, whatever the worker sends', async (path, body) => {
  const { post, workers } = await open()
  const own: Record<string, string>[] = [{}, { 'x-accel-buffering': 'yes' }]
  for (const headers of own) {
    workers[0].once(`POST ${path}`, sseAnswer([chunk({ content: 'a' }, 'stop'), '[DONE]'], { headers }))
    const reply = await post(path, { model, stream: true, ...body })
    expect(await bufferingOf(reply)).toEqual(streamed('text/event-stream'))
  }
})

test.each([
  ['/v1/responses', { input: 'hi' }],
  ['/v1/messages', { ...HELLO }],
])('a generated stream of %s has the header', async (path, body) => {
  const { post } = await open()
  const reply = await post(path, { model, stream: true, ...body })
  expect(await bufferingOf(reply)).toEqual(streamed(GENERATED))
})

test('a stream of a stored response has the header', async () => {
  const { create, get, fetchJson } = await open()
  const { id } = await create({ input: 'hi', background: true })
  await expect.poll(async () => (await fetchJson('GET', `/v1/responses/${id}`)).status).toBe('completed')
  expect(await bufferingOf(await get(`/v1/responses/${id}?stream=true`))).toEqual(streamed(GENERATED))
})

test('other responses have no such header', async () => {
  const { post, workers } = await open()
  const path = '/v1/chat/completions'
  const reply: ResponseJson = { choices: [] }
  workers[0].once(`POST ${path}`, jsonAnswer(reply))
  workers[0].once(`POST ${path}`, jsonAnswer(reply, { headers: { 'x-accel-buffering': 'no' } }))
  for (let count = 0; count < 2; count++)
    expect((await bufferingOf(await post(path, { model, messages })))[2]).toBeNull()
})
