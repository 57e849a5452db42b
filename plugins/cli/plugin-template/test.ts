import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startGateway, type TestGateway } from 'weir-gateway/testing'
import plugin from './plugin.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startGateway({ own: [plugin], plugins: { '{{name}}': { text: 'good morning' } } })
})
after(() => gateway?.stop())

test('the route returns the configured greeting', async () => {
  const response = await gateway.get('/{{name}}')
  assert.equal(response.status, 200)
  assert.deepEqual(await response.json(), { text: 'good morning' })
})

test('responses of other routes have it in a header', async () => {
  const response = await gateway.get('/health')
  assert.equal(response.headers.get('x-greeting'), 'good morning')
})
