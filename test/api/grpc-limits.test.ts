/** What engines over gRPC hear of ends and of tries. */
import { expect, test } from 'vitest'
import { openGrpcFleet, until } from './grpc-fleet.ts'

const CHAT = '/v1/chat/completions'
const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }

test('an answer that ends by itself is not taken back, streamed or whole', async () => {
  const { engine, post, ids } = await openGrpcFleet()
  const tokens = await ids('Hello there')
  engine.answer(tokens.map((id) => [id]))
  for (const stream of [true, false]) expect((await post(CHAT, { ...ask, stream })).status).toBe(200)
  // Another call behind them on the same connection: what was sent before it has arrived.
  await post(CHAT, ask)
  expect(engine.aborted).toEqual([])
})

test('an engine that is not there is tried five times in all, each time under a name of its own', async () => {
  const { engine, post } = await openGrpcFleet({ kernel: { breaker: { failureThreshold: 100 } } })
  engine.script = () => [{ status: 14, details: 'starting' }]
  expect((await post(CHAT, ask)).status).toBe(503)
  expect(engine.calls.length).toBe(5)
  expect(new Set(engine.calls.map(({ request }) => request.requestId)).size).toBe(5)
})

test('nobody tries on for a client that has left', async () => {
  const { engine, post } = await openGrpcFleet({
    kernel: { breaker: { failureThreshold: 100 }, retry: { initialBackoffMs: 300, maxBackoffMs: 300 } },
  })
  engine.script = () => [{ status: 14 }]
  const leaving = new AbortController()
  const reply = post(CHAT, ask, undefined, leaving.signal).catch((error: Error) => error.name)
  await until(() => engine.calls.length >= 1)
  leaving.abort()
  expect(await reply).toBe('AbortError')
  const count = engine.calls.length
  await new Promise((resolve) => setTimeout(resolve, 700))
  expect(engine.calls.length - count).toBeLessThanOrEqual(1)
})
