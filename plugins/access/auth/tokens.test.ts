/** Tokens against a real issuer: a server with a key set that rotates. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { KeyAuth } from './check.ts'
import { readKeys } from './keys.ts'
import { TokenVerifier } from './tokens.ts'

const ISSUER = 'https://issuer.example'
const REFETCH_MS = 100

type Pair = Awaited<ReturnType<typeof generateKeyPair>>

let server: Server
let fetches = 0
let isDown = false
let published: [string, Pair][]
let first: Pair
let logged: object[]

beforeEach(async () => {
  fetches = 0
  isDown = false
  logged = []
  first = await generateKeyPair('ES256')
  published = [['k1', first]]
  server = createServer(async (_request, reply) => {
    fetches++
    const keys = published.map(async ([kid, { publicKey }]) => ({ ...(await exportJWK(publicKey)), kid }))
    reply.statusCode = isDown ? 500 : 200
    reply.end(JSON.stringify({ keys: await Promise.all(keys) }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterEach(() => {
  vi.useRealTimers()
  server.closeAllConnections()
  server.close()
})

function verifier(jwksUrl: string, refetchMs = REFETCH_MS, cacheMs = 600_000): TokenVerifier {
  const config = {
    issuer: ISSUER,
    audience: 'weir',
    jwksUrl,
    clockSkewMs: 5000,
    tenantClaim: 'sub',
    roleClaim: 'roles',
    adminRole: 'admin',
    cacheMs,
    refetchMs,
    timeoutMs: 5000,
  } as const
  return new TokenVerifier({ ...config, algorithms: ['ES256'] }, { info: (line) => logged.push(line) })
}

/** The shared key has the format of a token, which must not matter. */
function auth(refetchMs?: number, cacheMs?: number): KeyAuth {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`
  const config = { apiKey: 'shared.key.text', tenantKeys: [], controlPlaneKeys: [], keys: [], auditLog: true }
  return new KeyAuth(readKeys(config, { warn() {} }), verifier(url, refetchMs, cacheMs))
}

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds
const good: JWTPayload = { iss: ISSUER, aud: 'weir', sub: 'team-a', exp: inSeconds(600) }

function sign(claims: JWTPayload, pair = first, kid = 'k1', alg = 'ES256'): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg, kid }).sign(pair.privateKey)
}

async function outcome(service: KeyAuth, token: string, access: 'api' | 'admin' = 'api'): Promise<string> {
  try {
    return (await service.check(access, { authorization: `Bearer ${token}`, apiKey: undefined })).tenant
  } catch (error) {
    const { status, code } = error as { status: number; code: string }
    return `${status} ${code}`
  }
}

const REFUSED = '401 invalid_token'

test('claims identify the tenant; the key set is fetched once', async () => {
  const service = auth()
  expect(await outcome(service, await sign(good))).toBe('jwt:team-a')
  expect(await outcome(service, await sign({ ...good, sub: 'team-b' }))).toBe('jwt:team-b')
  expect(fetches).toBe(1)
})

test('the admin role opens the control plane, from a list or a string; another role is 403', async () => {
  const service = auth()
  for (const roles of [['user', 'admin'], 'user admin'])
    expect(await outcome(service, await sign({ ...good, roles }), 'admin')).toBe('jwt:team-a')
  for (const roles of [['user'], 'administrator', undefined, { admin: true }, 7])
    expect(await outcome(service, await sign({ ...good, roles }), 'admin')).toBe('403 insufficient_role')
  expect(await outcome(service, await sign({ ...good, exp: 1, roles: ['admin'] }), 'admin')).toBe(REFUSED)
})

test('an invalid token is 401', async () => {
  const service = auth()
  const stranger = await generateKeyPair('ES256')
  const rsa = await generateKeyPair('RS256')
  published.push(['rsa', rsa])
  const [head, claims, signature] = (await sign(good)).split('.')
  const wrong: Record<string, string> = {
    issuer: await sign({ ...good, iss: 'https://other.example' }),
    audience: await sign({ ...good, aud: ['other'] }),
    expired: await sign({ ...good, exp: inSeconds(-6) }),
    'no end': await sign({ ...good, exp: undefined }),
    'not yet': await sign({ ...good, nbf: inSeconds(60) }),
    signature: await sign(good, stranger),
    algorithm: await sign(good, rsa, 'rsa', 'RS256'),
    'shared secret': await new SignJWT(good)
      .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
      .sign(Buffer.from(JSON.stringify(await exportJWK(first.publicKey)))),
    'unsigned with a signature': `${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.${signature}`,
    'changed claims': `${head}.${Buffer.from(JSON.stringify({ ...good, sub: 'root' })).toString('base64url')}.${signature}`,
    'no tenant': await sign({ ...good, sub: undefined }),
    'empty tenant': await sign({ ...good, sub: '' }),
    'long tenant': await sign({ ...good, sub: 'x'.repeat(257) }),
    'tenant with a line break': await sign({ ...good, sub: 'a\nb' }),
    'not json': 'YQ.YQ.YQ',
  }
  for (const [what, token] of Object.entries(wrong))
    expect([what, await outcome(service, token)]).toEqual([what, REFUSED])
  // Without the form of a signed token.
  for (const token of ['', new UnsecuredJWT(good).encode()])
    expect(await outcome(service, token)).toBe('401 invalid_api_key')
  expect(await outcome(service, await sign({ ...good, exp: inSeconds(-2) }))).toBe('jwt:team-a')
})

test('the reason of a rejection is in the header and in the log, without text of the token', async () => {
  const service = auth()
  const stranger = await generateKeyPair('ES256')
  const reasons: [string, string][] = [
    [await sign({ ...good, exp: inSeconds(-60) }), 'it has expired'],
    [await sign({ ...good, aud: 'secret' }), 'the audience is not the configured one'],
    [await sign({ ...good, iss: 'secret' }), 'the issuer is not the configured one'],
    [await sign({ ...good, nbf: inSeconds(60) }), 'it is not valid yet'],
    [await sign({ ...good, exp: undefined }), 'it has no valid exp claim'],
    [await sign(good, first, 'secret'), 'the issuer has no such key'],
    [await sign(good, stranger), 'the signature is wrong'],
    [await sign({ ...good, sub: '' }), 'the tenant claim is missing or invalid'],
    ['c2VjcmV0.c2VjcmV0.c2VjcmV0', 'it is malformed'],
  ]
  for (const access of ['api', 'admin'] as const)
    for (const [token, reason] of reasons)
      await expect(
        service.check(access, { authorization: `BEARER ${token}`, apiKey: undefined }),
      ).rejects.toMatchObject({
        code: 'invalid_token',
        message: `the token was rejected: ${reason}`,
        headers: ['www-authenticate', `Bearer error="invalid_token", error_description="${reason}"`],
      })
  // The second rejection of each reason has no line.
  expect(logged).toEqual(reasons.map(([, reason]) => ({ reason, suppressed: 0 })))
})

test('a rotated key is fetched; unknown keys cause at most one fetch per interval', async () => {
  const service = auth()
  expect(await outcome(service, await sign(good))).toBe('jwt:team-a')
  const second = await generateKeyPair('ES256')
  published = [['k2', second]]
  await expect.poll(async () => outcome(service, await sign(good, second, 'k2'))).toBe('jwt:team-a')
  expect(fetches).toBe(2)
  expect(await outcome(service, await sign(good))).toBe(REFUSED)

  const calm = auth(60_000)
  const before = fetches
  for (let index = 0; index < 20; index++)
    expect(await outcome(calm, await sign(good, first, `unknown-${index}`))).toBe(REFUSED)
  expect(fetches - before).toBe(1)
})

test('a revoked key is valid until the cached key set expires', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const service = auth(REFETCH_MS, 60_000)
  const token = await sign(good)
  expect(await outcome(service, token)).toBe('jwt:team-a')
  published = []
  vi.setSystemTime(Date.now() + 59_000)
  expect(await outcome(service, token)).toBe('jwt:team-a')
  vi.setSystemTime(Date.now() + 2_000)
  expect(await outcome(service, token)).toBe(REFUSED)
  expect(fetches).toBe(2)
})

test('an unreachable issuer is 503 and not retried during the interval; keys are accepted meanwhile', async () => {
  isDown = true
  const service = auth(60_000)
  const token = await sign(good)
  for (let index = 0; index < 10; index++)
    expect(await outcome(service, token)).toBe('503 identity_keys_unavailable')
  expect(fetches).toBe(1)
  expect(await outcome(service, 'shared.key.text')).toBe('auth:shared')
  expect(await outcome(service, 'another-key')).toBe('401 invalid_api_key')
})

test('tokens of the issuer are never forwarded to workers', async () => {
  const service = auth()
  expect(service.isGatewayKey(`Bearer ${await sign({ ...good, exp: 1 })}`)).toBe(true)
  expect(service.isGatewayKey(`bearer ${await sign({ ...good, iss: 'https://other.example' })}`)).toBe(false)
  expect(service.isGatewayKey('Bearer a.b.c')).toBe(false)
})

test('with an issuer and no keys, every route requires a token; a key set over plain http is rejected at start', async () => {
  const none = { keys: [], hasCredentials: true }
  const service = new KeyAuth(none, verifier('https://issuer.example/keys'))
  for (const access of ['api', 'admin'] as const)
    expect(() => service.check(access, { authorization: undefined, apiKey: undefined })).toThrow(/API key/)
  expect(() => verifier('http://issuer.example/keys')).toThrow(/https/)
  expect(() => verifier('not a url')).toThrow(/https/)
})
