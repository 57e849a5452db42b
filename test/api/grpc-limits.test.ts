/** Cancellations and attempts as gRPC engines see them. */
import { expect, test } from 'vitest'
import { openGrpcFleet, until } from './grpc-fleet.ts'

const CHAT = '/v1/chat/completions'
const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }

test('a finished response is not cancelled, streamed or non-streamed', async () => {
  const { engine, post, ids } = await openGrpcFleet()
  const tokens = await ids('Hello there')
  engine.answer(tokens.map((id) => [id]))
  for (const stream of [true, false]) expect((await post(CHAT, { ...ask, stream })).status).toBe(200)
  // A later call on the same connection: everything sent before it has arrived.
  await post(CHAT, ask)
  expect(engine.aborted).toEqual([])
})

test('an unavailable engine is tried five times, each time with a new request id', async () => {
  const { engine, post } = await openGrpcFleet({ kernel: { breaker: { failureThreshold: 100 } } })
  engine.script = () => [{ status: 14, details: 'starting' }]
  expect((await post(CHAT, ask)).status).toBe(503)
  expect(engine.calls.length).toBe(5)
  expect(new Set(engine.calls.map(({ request }) => request.requestId)).size).toBe(5)
})

test('no retries after a client disconnect', async () => {
  const { engine, post } = await openGrpcFleet({
    kernel: { breaker: { failureThreshold: 100 }, retry: { initialBackoffMs: 300, maxBackoffMs: 300 } },
  })
  engine.script = () => [{ status: 14 }]
  const controller = new AbortController()
  const reply = post(CHAT, ask, undefined, controller.signal).catch((error: Error) => error.name)
  await until(() => engine.calls.length >= 1)
  controller.abort()
  expect(await reply).toBe('AbortError')
  const count = engine.calls.length
  await new Promise((resolve) => setTimeout(resolve, 700))
  expect(engine.calls.length - count).toBeLessThanOrEqual(1)
})
