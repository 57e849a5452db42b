import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startEngine, startGateway, type TestEngine, type TestGateway } from 'weir-gateway/testing'
import plugin from './latency-policy.ts'

let engines: TestEngine[]
let gateway: TestGateway

before(async () => {
  engines = [
    await startEngine({ models: ['demo'], ttftMs: 600 }),
    await startEngine({ models: ['demo'], ttftMs: 5 }),
  ]
  gateway = await startGateway({
    own: [plugin],
    kernel: { policy: 'latency_aware' },
    plugins: { chat: {}, workers: { urls: engines.map(({ url }) => url) } },
  })
})
after(async () => {
  await gateway.stop()
  for (const engine of engines) await engine.stop()
})

test('the faster worker gets most requests, the slower one is still measured', async () => {
  const body = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }
  for (let count = 0; count < 60; count++) await (await gateway.post('/v1/chat/completions', body)).text()
  const [slow, fast] = await Promise.all(
    engines.map(async (engine) => (await engine.requests('/v1/chat/completions')).length),
  )
  assert.equal(slow + fast, 60)
  assert.ok(slow >= 1 && slow < 20, `the slow worker got ${slow} of 60`)
})
