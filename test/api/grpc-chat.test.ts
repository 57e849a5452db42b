/** Chat over engines that are reached over gRPC. @source grpc facts 8.2 */
import { expect, test } from 'vitest'
import { eventsOf, openGrpcFleet } from './grpc-fleet.ts'

const CHAT = '/v1/chat/completions'
const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }

test('a streamed chat over an sglang engine', async () => {
  const { engine, post, ids } = await openGrpcFleet()
  const text = 'Hello there, wörld 😀!'
  engine.answer((await ids(text)).map((id) => [id]))
  const reply = await post(CHAT, { ...ask, stream: true, stream_options: { include_usage: true } })
  const body = await reply.text()
  expect([reply.status, body]).toEqual([200, expect.stringContaining('[DONE]')])
  const chunks = eventsOf(body).slice(0, -1).map((data) => JSON.parse(data))
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(text)
})
