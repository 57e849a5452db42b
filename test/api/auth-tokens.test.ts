/** Tokens over real sockets: the access check waits for the issuer's keys while bodies arrive. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, onTestFinished, test } from 'vitest'
import { openFleet } from './fleet.ts'

test('a token opens the serving routes, with the admin role the control plane, and never reaches a worker', async () => {
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
  const fleet = await openFleet({ plugins: { auth: { jwt } } })
  const bearer = async (roles: string[], lifetime = '5m') => {
    const token = new SignJWT({ sub: 'team-a', roles }).setProtectedHeader({ alg: 'RS256', kid: 'k1' })
    token.setIssuer(jwt.issuer).setAudience(jwt.audience).setExpirationTime(lifetime)
    return { authorization: `Bearer ${await token.sign(privateKey)}` }
  }
  const chat = { model: 'test-model', messages: [{ role: 'user', content: 'x'.repeat(300_000) }] }
  const post = async (headers?: Record<string, string>) =>
    (await fleet.post('/v1/chat/completions', chat, headers)).status

  expect(await post()).toBe(401)
  expect(await post(await bearer([], '-5m'))).toBe(401)
  expect(await post(await bearer([]))).toBe(200)
  expect((await fleet.get('/workers', await bearer(['user']))).status).toBe(403)
  expect((await fleet.get('/workers', await bearer(['admin']))).status).toBe(200)
  const [seen, ...others] = fleet.workers[0].requestsTo('POST /v1/chat/completions')
  expect(others).toEqual([])
  expect(JSON.stringify(seen)).not.toContain('Bearer')
})
