/** `cacheSalt: tenant`: engines get a salt per tenant, in every lane; other workers get none. */
import { expect, test } from 'vitest'
import { saltOf, withSalt } from '../../plugins/workers/registry/cache-salt.ts'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

const auth = { tenantKeys: ['a:key-a', 'b:key-b'] }
const messages = [{ role: 'user', content: 'hi' }]
const LANES: [string, object][] = [
  ['/v1/chat/completions', { messages }],
  ['/v1/completions', { prompt: 'hi' }],
  ['/v1/responses', { input: 'hi', store: false }],
  ['/v1/messages', { messages, max_tokens: 5 }],
  ['/generate', { text: 'hi' }],
]

function open(spec: Record<string, unknown>, cacheSalt = 'tenant'): Promise<Fleet> {
  return openFleet({
    workers: [{ spec }],
    workersSection: { cacheSalt },
    plugins: { auth, responses: {}, messages: {} },
  })
}

/** The salt that the worker got with the request of a tenant. */
async function saltFor(fleet: Fleet, tenant: string, path: string, body: object): Promise<unknown> {
  const [worker] = fleet.workers
  worker.requests.length = 0
  await (
    await fleet.post(path, { model: 'test-model', ...body }, { authorization: `Bearer key-${tenant}` })
  ).text()
  const sent = worker.requests.map((request) => request.json() as Record<string, unknown>)
  expect(sent).toHaveLength(1)
  const { cache_salt: salt, extra_key: key, ...rest } = sent[0]
  expect(Object.keys(rest).length).toBeGreaterThan(1)
  return path === '/generate' ? key : salt
}

test.each(LANES)('tenants have different salts on %s', async (path, body) => {
  const fleet = await open({ runtime_type: 'sglang' })
  const own = await saltFor(fleet, 'a', path, body)
  expect(own).toBe(saltOf('auth:a'))
  expect(await saltFor(fleet, 'b', path, body)).toBe(saltOf('auth:b'))
  const member = path === '/generate' ? 'extra_key' : 'cache_salt'
  // Translated requests have the members of their format only.
  const given = await saltFor(fleet, 'b', path, { ...body, [member]: own })
  expect(given).toMatch(new RegExp(`^${saltOf('auth:b')}`))
})

test('workers of other kinds, routes without a prompt cache, and the default have none', async () => {
  const external = await open({ runtime_type: 'external', provider: 'openai', api_key: 'k' })
  external.workers[0].script('POST /v1/chat/completions', jsonAnswer({ choices: [] }))
  expect(await saltFor(external, 'a', ...LANES[0])).toBeUndefined()
  const engine = await open({ runtime_type: 'vllm' })
  expect(await saltFor(engine, 'a', '/v1/embeddings', { input: 'hi' })).toBeUndefined()
  expect(await saltFor(await open({ runtime_type: 'vllm' }, 'none'), 'a', ...LANES[0])).toBeUndefined()
})

test.each([
  ['{}', '{"cache_salt":"S"}'],
  [' {"a":{"cache_salt":1}}', ' {"cache_salt":"S","a":{"cache_salt":1}}'],
  ['{"cache_salt":"x","b":1,"cache\\u005fsalt":null}', '{"cache_salt":"Sx","b":1,"cache\\u005fsalt":"S"}'],
])('%s becomes %s', (body, expected) => {
  expect(withSalt(Buffer.from(body), 'cache_salt', 'S').toString()).toBe(expected)
})
