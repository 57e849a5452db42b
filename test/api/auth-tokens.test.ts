/** JWT access over real sockets: the access check waits for the issuer's keys while bodies arrive. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openFleet } from './fleet.ts'
import { chatAnswer, openResponses } from './responses/responses-fleet.ts'
import { check, connect } from './responses/socket-client.ts'

/** An issuer with one key, and a function that returns headers with its tokens. */
async function openIssuer() {
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1' }] })
  const issuer = createServer((_request, reply) => reply.end(keys)).listen(0, '127.0.0.1')
  await once(issuer, 'listening')
  onTestFinished(() => {
    issuer.closeAllConnections()
    issuer.close()
  })
  const jwksUrl = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/`
  const jwt = { issuer: 'https://issuer.example', audience: 'weir', jwksUrl }
  const bearer = async (roles: string[], lifetime = '5m', sub = 'team-a') => {
    const token = new SignJWT({ sub, roles }).setProtectedHeader({ alg: 'RS256', kid: 'k1' })
    token.setIssuer(jwt.issuer).setAudience(jwt.audience).setExpirationTime(lifetime)
    return { authorization: `Bearer ${await token.sign(privateKey)}` }
  }
  return { jwt, bearer }
}

test('a token opens serving routes, with role admin also the control plane, and is never forwarded to a worker', async () => {
  const { jwt, bearer } = await openIssuer()
  const fleet = await openFleet({ plugins: { auth: { jwt } } })
  const chat = { model: 'test-model', messages: [{ role: 'user', content: 'x'.repeat(300_000) }] }
  const post = async (headers?: Record<string, string>) =>
    (await fleet.post('/v1/chat/completions', chat, headers)).status

  expect(await post()).toBe(401)
  const expired = await fleet.post('/v1/chat/completions', chat, await bearer([], '-5m'))
  expect([expired.status, expired.headers.get('www-authenticate')]).toEqual([
    401,
    'Bearer error="invalid_token", error_description="it has expired"',
  ])
  await expired.arrayBuffer()
  expect(await post(await bearer([]))).toBe(200)
  expect((await fleet.get('/workers', await bearer(['user']))).status).toBe(403)
  expect((await fleet.get('/workers', await bearer(['admin']))).status).toBe(200)
  const [seen, ...others] = fleet.workers[0].requestsTo('POST /v1/chat/completions')
  expect(others).toEqual([])
  expect(JSON.stringify(seen)).not.toContain('Bearer')
})

test('the next message after the expiry of a token is an error, and closes its WebSocket', async () => {
  const { jwt, bearer } = await openIssuer()
  const { gateway } = await openResponses(chatAnswer('x'), { plugins: { auth: { jwt } } })
  const { authorization } = await bearer([])
  const { ws, turn } = await connect(gateway.url, 'test-model', authorization.slice('Bearer '.length))
  const closed = new Promise((resolve) => ws.once('close', (code) => resolve(code)))
  expect(check(await turn({ input: 'hi' })).response.status).toBe('completed')
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 600_000)
  onTestFinished(() => void vi.restoreAllMocks())
  const [refused] = await turn({ input: 'hi' })
  expect([refused.status, refused.error?.code]).toEqual([401, 'invalid_token'])
  expect(await closed).toBe(1008)
})

test('the tenant of a token has its own limits and class, whatever the tenant header says', async () => {
  // Buckets refill by this clock, so it is stopped.
  vi.spyOn(process.hrtime, 'bigint').mockReturnValue(process.hrtime.bigint())
  onTestFinished(() => void vi.restoreAllMocks())
  const { jwt, bearer } = await openIssuer()
  const tenants = {
    trustTenantHeader: true,
    default: { requestsPerMinute: 1 },
    overrides: [{ tenant: 'jwt:team-b', requestsPerMinute: 2 }],
  }
  const scheduler = { tenants: [{ tenant: 'jwt:team-b', maxClass: 'interactive' }] }
  const fleet = await openFleet({ plugins: { auth: { jwt }, limits: { tenants, scheduler } } })
  const status = async (team: string, header: string) => {
    const headers = { ...(await bearer([], '5m', team)), 'x-weir-tenant-id': header }
    const chat = { model: 'test-model', messages: [{ role: 'user', content: 'hello' }] }
    return (await fleet.post('/v1/chat/completions', chat, headers)).status
  }
  expect([await status('team-a', 'one'), await status('team-a', 'two')]).toEqual([200, 429])
  expect([await status('team-b', 'one'), await status('team-b', 'two')]).toEqual([200, 200])
  expect(await status('team-b', 'three')).toBe(429)
  const use = await fleet.get('/limits?tenant=jwt:team-b', await bearer(['admin']))
  expect(await use.json()).toMatchObject({ use: { tenant: [{ left: 0 }] } })
})
