import { describe, expect, test } from 'vitest'
import { type Fleet, openFleet } from './fleet.ts'

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const chat = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const PUBLIC = ['/health', '/liveness', '/readiness', '/health_generate', '/v1/models', '/get_model_info']
const withAuth = (auth: object, workers?: []) => openFleet({ plugins: { auth }, ...(workers && { workers }) })

async function statusOfChat(fleet: Fleet, headers?: Record<string, string>): Promise<number> {
  return (await fleet.post('/v1/chat/completions', chat, headers)).status
}

async function statusOfWorkers(fleet: Fleet, headers?: Record<string, string>): Promise<number> {
  return (await fleet.get('/workers', headers)).status
}

test('without a configured key every route is open', async () => {
  const fleet = await withAuth({})
  expect(await statusOfChat(fleet)).toBe(200)
  expect(await statusOfChat(fleet, bearer('anything'))).toBe(200)
  expect(await statusOfWorkers(fleet)).toBe(200)
})

describe('with a shared key', () => {
  test('serving and control-plane routes require it, public ones do not', async () => {
    const fleet = await withAuth({ apiKey: 'shared' })
    for (const headers of [
      undefined,
      bearer('wrong'),
      { authorization: 'Basic shared' },
      { authorization: 'shared' },
      { 'x-api-key': 'shared' },
    ]) {
      expect(await statusOfChat(fleet, headers)).toBe(401)
      expect(await statusOfWorkers(fleet, headers)).toBe(401)
    }
    for (const headers of [bearer('shared'), { authorization: 'bearer shared' }]) {
      expect(await statusOfChat(fleet, headers)).toBe(200)
      expect(await statusOfWorkers(fleet, headers)).toBe(200)
    }
    for (const path of PUBLIC) expect((await fleet.get(path)).status).toBe(200)
    expect(fleet.workers[0].requestsTo('POST /v1/chat/completions')).toHaveLength(2)
  })

  test('the gateway key is not forwarded to a worker; without a key the client credential is', async () => {
    const guarded = await withAuth({ apiKey: 'shared' })
    await statusOfChat(guarded, bearer('shared'))
    expect(guarded.workers[0].requests[0].header('authorization')).toBeUndefined()
    const openGateway = await withAuth({})
    await statusOfChat(openGateway, bearer('theirs'))
    expect(openGateway.workers[0].requests[0].header('authorization')).toBe('Bearer theirs')
  })

  test('a rejected serving request has type authentication_error and keeps its request id', async () => {
    const fleet = await withAuth({ apiKey: 'shared' }, [])
    const reply = await fleet.post('/v1/chat/completions', chat, { 'x-request-id': 'mine' })
    expect(reply.status).toBe(401)
    expect(reply.headers.get('x-request-id')).toBe('mine')
    expect(await reply.json()).toMatchObject({
      error: { type: 'authentication_error', message: expect.any(String) },
    })
  })

  test('a rejected control-plane request has type unauthorized and a WWW-Authenticate header', async () => {
    const fleet = await withAuth({ apiKey: 'shared' }, [])
    const reply = await fleet.get('/workers', { 'x-request-id': 'mine' })
    expect(reply.status).toBe(401)
    expect(reply.headers.get('www-authenticate')).toBe('Bearer realm="control-plane"')
    expect(reply.headers.get('x-request-id')).toBe('mine')
    expect(await reply.json()).toMatchObject({ error: { type: 'unauthorized', message: expect.any(String) } })
  })
})

test('tenant keys open serving routes; without an admin key the control plane is closed', async () => {
  const fleet = await withAuth({ tenantKeys: ['a:key-a', 'b:key:with:colons'] })
  expect(await statusOfChat(fleet, bearer('key-a'))).toBe(200)
  expect(await statusOfChat(fleet, bearer('key:with:colons'))).toBe(200)
  expect(await statusOfChat(fleet, bearer('a:key-a'))).toBe(401)
  expect(await statusOfWorkers(fleet, bearer('key-a'))).toBe(401)
  expect(await statusOfWorkers(fleet)).toBe(401)
})

test('tenant keys beside a shared key do not open the control plane', async () => {
  const fleet = await withAuth({ apiKey: 'shared', tenantKeys: ['a:key-a'] })
  expect((await fleet.post('/generate', { text: 'hi' }, bearer('key-a'))).status).not.toBe(401)
  expect(await statusOfWorkers(fleet, bearer('key-a'))).toBe(401)
  expect(await statusOfWorkers(fleet, bearer('shared'))).toBe(200)
})

test('a control plane with its own keys accepts only those of role admin', async () => {
  const fleet = await withAuth({
    apiKey: 'shared',
    controlPlaneKeys: ['ops:Ops:admin:root', 'dev:Dev:user:low', 'malformed'],
  })
  expect(await statusOfWorkers(fleet, bearer('root'))).toBe(200)
  expect(await statusOfWorkers(fleet, bearer('shared'))).toBe(401)
  expect(await statusOfWorkers(fleet, bearer('aaa.bbb.ccc'))).toBe(401)
  expect(await statusOfWorkers(fleet)).toBe(401)
  const refused = await fleet.get('/workers', bearer('low'))
  expect(refused.status).toBe(403)
  expect(await refused.json()).toMatchObject({ error: { type: 'forbidden', message: expect.any(String) } })
  expect(await statusOfChat(fleet, bearer('root'))).toBe(401)
  expect(await statusOfChat(fleet, bearer('shared'))).toBe(200)
})

test.each([
  [{ tenantKeys: ['no-colon'] }, 'tenantKeys.0'],
  [{ tenantKeys: ['a:secret', 'b:secret'] }, 'tenantKeys.1'],
  [{ apiKey: ' secret' }, 'auth.apiKey'],
])('%j stops the boot and does not print a key', async (auth, named) => {
  const message = await withAuth(auth, []).then(
    () => 'it started',
    (error: Error) => error.message,
  )
  expect(message).toContain(named)
  expect(message).not.toContain('secret')
})
