/** Rejections before the messages routes have the Messages error format and a request id. */
import { expect, test } from 'vitest'
import { HELLO } from './messages-fleet.ts'
import { openWasmFleet } from './wasm-fleet.ts'

const envelope = (type: string) => ({
  type: 'error',
  error: { type, message: expect.any(String) },
  request_id: expect.stringMatching(/^req_/),
})

test('a failing module and a too large body are reported in the Messages error format', async () => {
  const fleet = await openWasmFleet(
    {},
    { plugins: { messages: {} }, kernel: { http: { maxBodyBytes: 2_000 } } },
  )
  const large = await fleet.post('/v1/messages', 'x'.repeat(3_000))
  expect([large.status, await large.json()]).toEqual([413, envelope('request_too_large')])
  expect(large.headers.get('request-id')).toMatch(/^req_/)
  const passed = await fleet.post('/v1/messages', HELLO)
  expect([passed.status, passed.headers.get('request-id')]).toEqual([200, expect.stringMatching(/^req_/)])
  const uuid = await fleet.attach('a', 'OnRequest', { head: '{"action":"reject","status":403}' })
  const rejected = await fleet.post('/v1/messages', HELLO)
  expect(rejected.status).toBe(403)
  expect(rejected.headers.get('request-id')).toMatch(/^req_/)
  expect(await rejected.json()).toEqual(envelope('permission_error'))
  expect((await fleet.remove(uuid)).status).toBe(200)
  expect((await fleet.post('/v1/messages', HELLO)).status).toBe(200)
})
