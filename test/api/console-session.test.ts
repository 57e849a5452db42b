/** Sessions of the console over real sockets: sign-in, what a session may do, and what ends it. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type FleetOptions, openFleet } from './fleet.ts'

const OPERATORS = { apiKey: 'serving-key', controlPlaneKeys: ['ops:Ops:admin:boss', 'eye:Eye:user:look'] }
const OWN_PAGE = { 'x-weir-console': '1', 'sec-fetch-site': 'same-origin' }

async function openConsole(auth: object = OPERATORS, options: FleetOptions = {}) {
  const { gateway } = await openFleet({
    workers: [],
    ...options,
    plugins: { auth, console: {}, ...options.plugins },
  })
  const call = (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
    fetch(gateway.url + path, { method, headers, body })
  const signIn = (key: string, headers: Record<string, string> = {}) =>
    call('POST', '/console/session', { authorization: `Bearer ${key}`, ...headers })
  /** @returns the headers of a page with a session */
  const session = async (key: string) => {
    const response = await signIn(key)
    expect(response.status).toBe(200)
    return { cookie: cookieOf(response) }
  }
  const show = async (headers: Record<string, string> = {}) =>
    (await call('GET', '/console/session', headers)).json()
  return { gateway, call, signIn, session, show }
}

const cookieOf = (response: Response) => response.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
const codeOf = async (response: Response) =>
  ((await response.json()) as { error: { code: string } }).error.code
const worker = JSON.stringify({ url: 'http://127.0.0.1:9', models: [{ id: 'm' }] })

test('log lines of modules are for operators with role admin', async () => {
  const { call, session } = await openConsole(OPERATORS, { plugins: { wasm: {} } })
  const path = `/wasm/${crypto.randomUUID()}/logs`
  const refused = await call('GET', path, { ...(await session('look')), ...OWN_PAGE })
  expect([refused.status, await codeOf(refused)]).toEqual([403, 'module_log_forbidden'])
  const unknown = await call('GET', path, { ...(await session('boss')), ...OWN_PAGE })
  expect([unknown.status, await codeOf(unknown)]).toEqual([404, 'module_not_found'])
})

test('an operator signs in, reads and changes the control plane, and signs out', async () => {
  const { call, signIn, session, show } = await openConsole()
  const response = await signIn('boss')
  expect(await response.json()).toEqual({
    principal: { owner: 'auth:ops', role: 'admin' },
    expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
  })
  expect(response.headers.get('set-cookie')).toMatch(
    /^weir_session=[\w-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  )
  expect(response.headers.get('cache-control')).toBe('no-store')
  const cookies = await session('boss')
  expect((await call('GET', '/workers', cookies)).status).toBe(200)
  expect((await call('POST', '/workers', { ...cookies, ...OWN_PAGE }, worker)).status).toBe(202)
  expect(await show(cookies)).toMatchObject({
    is_required: true,
    principal: { owner: 'auth:ops', role: 'admin' },
    version: expect.stringMatching(/^\d/),
    gateway: expect.any(String),
    features: ['chat', 'live', 'workers'],
  })
  const signedOut = await call('DELETE', '/console/session', { ...cookies, ...OWN_PAGE })
  expect([signedOut.status, signedOut.headers.get('set-cookie')]).toEqual([
    204,
    'weir_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict',
  ])
  // A copy of the cookie has ended too; another session of the key goes on.
  expect((await call('GET', '/workers', cookies)).status).toBe(401)
  expect(await show(cookies)).toMatchObject({ principal: null })
  expect((await call('GET', '/workers', { cookie: cookieOf(response) })).status).toBe(200)
})

test('without a session, the console shows only that one is needed', async () => {
  const { call, show } = await openConsole()
  const nothing = {
    is_required: true,
    principal: null,
    expires_at: null,
    version: null,
    gateway: null,
    features: [],
  }
  expect(await show()).toEqual(nothing)
  for (const cookie of ['weir_session=', 'weir_session=AAAA', `weir_session=${'A'.repeat(200)}`, '=;;==']) {
    expect(await show({ cookie })).toEqual(nothing)
    expect((await call('GET', '/workers', { cookie })).status).toBe(401)
  }
})

test('a gateway without credentials needs no session', async () => {
  for (const kernel of [{}, { auth: 'off' }]) {
    const { show } = await openConsole({}, { kernel })
    expect(await show()).toMatchObject({
      is_required: false,
      principal: null,
      features: ['chat', 'live', 'workers'],
    })
  }
})

test('an operator without role admin may only read', async () => {
  const { call, session, signIn } = await openConsole()
  expect((await (await signIn('look')).json()) as object).toMatchObject({ principal: { role: 'user' } })
  const cookies = await session('look')
  expect((await call('GET', '/workers', cookies)).status).toBe(200)
  const refused = await call('POST', '/workers', { ...cookies, ...OWN_PAGE }, worker)
  expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_role'])
  // The key itself opens no more than before.
  expect((await call('GET', '/workers', { authorization: 'Bearer look' })).status).toBe(403)
})

test('a key that does not open the control plane opens no session, and a session no serving route', async () => {
  const { call, signIn, session } = await openConsole()
  for (const key of ['serving-key', 'wrong', '']) {
    const response = await signIn(key)
    expect([response.status, response.headers.get('set-cookie')]).toEqual([401, null])
  }
  const chat = JSON.stringify({ model: 'm', messages: [] })
  const response = await call(
    'POST',
    '/v1/chat/completions',
    { ...(await session('boss')), ...OWN_PAGE },
    chat,
  )
  expect(response.status).toBe(401)
})

test('requests of other pages are rejected: cross-site request forgery', async () => {
  const { gateway, call, session } = await openConsole()
  const cookies = await session('boss')
  const forged: [method: string, headers: Record<string, string>][] = [
    // A form of another site, or of another port of this host.
    ['POST', {}],
    ['POST', { 'x-weir-console': '0' }],
    ['POST', { ...OWN_PAGE, 'sec-fetch-site': 'cross-site' }],
    ['POST', { ...OWN_PAGE, 'sec-fetch-site': 'same-site' }],
    // Browsers without fetch metadata.
    ['POST', { 'x-weir-console': '1', origin: 'https://evil.example' }],
    ['POST', { 'x-weir-console': '1', origin: 'http://127.0.0.1:1' }],
    ['POST', { 'x-weir-console': '1', origin: 'null' }],
    ['GET', { origin: 'https://evil.example' }],
    ['GET', { 'sec-fetch-site': 'same-site' }],
  ]
  for (const [method, headers] of forged) {
    const response = await call(
      method,
      '/workers',
      { ...cookies, ...headers },
      method === 'GET' ? undefined : worker,
    )
    expect([headers, response.status, await codeOf(response)]).toEqual([
      headers,
      403,
      'foreign_session_request',
    ])
  }
  expect((await call('DELETE', '/console/session', cookies)).status).toBe(403)
  for (const [name, value] of Object.entries({ origin: gateway.url, 'sec-fetch-site': 'none' }))
    expect((await call('GET', '/workers', { ...cookies, [name]: value })).status).toBe(200)
  const own = { ...cookies, 'x-weir-console': '1', origin: gateway.url }
  expect((await call('POST', '/workers', own, worker)).status).toBe(202)
})

test('allowed origins of the API are no pages of the console', async () => {
  for (const corsOrigins of [['*'], ['https://app.example']]) {
    const { call, session } = await openConsole(OPERATORS, { kernel: { http: { corsOrigins } } })
    const headers = { ...(await session('boss')), origin: 'https://app.example', 'x-weir-console': '1' }
    const response = await call('POST', '/workers', headers, worker)
    expect([response.status, response.headers.get('access-control-allow-credentials')]).toEqual([403, null])
  }
})

test('a session ends with its key: revoked at run time, removed by a reload, or expired', async () => {
  const keys = [{ id: 'boss', principal: 'ops', role: 'admin', key: 'boss' }]
  const dir = mkdtempSync(join(tmpdir(), 'weir-console-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const { gateway, call, signIn, session } = await openConsole(
    { keys },
    { plugins: { keys: {}, reload: {}, storage: { dir } } },
  )
  const admin = await session('boss')
  const created = await call(
    'POST',
    '/keys',
    { ...admin, ...OWN_PAGE },
    JSON.stringify({ principal: 'ann', role: 'admin' }),
  )
  expect(created.status).toBe(201)
  const { id, key } = (await created.json()) as { id: string; key: string }
  // The key of a tenant is no operator's.
  const tenant = await call('POST', '/keys', { ...admin, ...OWN_PAGE }, JSON.stringify({ tenant: 'team-a' }))
  expect((await signIn(((await tenant.json()) as { key: string }).key)).status).toBe(401)
  const ann = await session(key)
  expect((await call('GET', '/workers', ann)).status).toBe(200)
  expect((await call('DELETE', `/keys/${id}`, { ...admin, ...OWN_PAGE })).status).toBe(200)
  expect((await call('GET', '/workers', ann)).status).toBe(401)
  expect(await (await call('GET', '/console/session', ann)).json()).toMatchObject({ principal: null })

  gateway.rewrite({ auth: { keys: [{ ...keys[0], id: 'next', key: 'next-key' }] } })
  expect((await call('POST', '/config/apply', { ...admin, ...OWN_PAGE })).status).toBe(200)
  expect((await call('GET', '/workers', admin)).status).toBe(401)
  expect((await call('GET', '/workers', await session('next-key'))).status).toBe(200)
})

test('a session ends with the shared key that opened it, although its owner has another one', async () => {
  const { gateway, call, session } = await openConsole({ apiKey: 'first' }, { plugins: { reload: {} } })
  const cookies = await session('first')
  gateway.rewrite({ auth: { apiKey: 'second' } })
  expect((await call('POST', '/config/apply', { ...cookies, ...OWN_PAGE })).status).toBe(200)
  expect((await call('GET', '/workers', cookies)).status).toBe(401)
})

test('a session ends at its time', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const { call, session, show } = await openConsole(OPERATORS, { plugins: { console: { sessionSecs: 60 } } })
  const cookies = await session('boss')
  vi.setSystemTime(Date.now() + 59_000)
  expect((await call('GET', '/workers', cookies)).status).toBe(200)
  vi.setSystemTime(Date.now() + 1_000)
  expect((await call('GET', '/workers', cookies)).status).toBe(401)
  expect(await show(cookies)).toMatchObject({ principal: null, expires_at: null })
})

test('a token opens a session with role admin, which ends when the token expires', async () => {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const set = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256' }] })
  const issuer = createServer((_request, reply) => reply.end(set)).listen(0, '127.0.0.1')
  await once(issuer, 'listening')
  onTestFinished(() => {
    issuer.closeAllConnections()
    issuer.close()
  })
  const jwksUrl = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/`
  const jwt = { issuer: 'https://issuer.example', audience: 'weir', jwksUrl, clockSkewMs: 0 }
  const { call, signIn, session } = await openConsole({ jwt })
  const token = (roles: string[], more = {}) =>
    new SignJWT({ sub: 'ann', roles, ...more })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .setIssuer(jwt.issuer)
      .setAudience(jwt.audience)
      .setExpirationTime('5m')
      .sign(privateKey)
  // A client of the serving routes, who is no operator.
  const refused = await signIn(await token(['user']))
  expect([refused.status, await codeOf(refused), refused.headers.get('set-cookie')]).toEqual([
    403,
    'insufficient_role',
    null,
  ])
  const long = await signIn(await token(['admin'], { groups: 'g'.repeat(3_000) }))
  expect([long.status, await codeOf(long)]).toEqual([400, 'credential_too_long'])
  const cookies = await session(await token(['admin']))
  expect((await call('GET', '/workers', cookies)).status).toBe(200)
  expect((await call('POST', '/workers', { ...cookies, ...OWN_PAGE }, worker)).status).toBe(202)
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  vi.setSystemTime(Date.now() + 301_000)
  expect((await call('GET', '/workers', cookies)).status).toBe(401)
})

test('the cookie is Secure for pages that were loaded over TLS', async () => {
  const { gateway, signIn } = await openConsole()
  const isSecure = async (headers: Record<string, string>) =>
    (await signIn('boss', headers)).headers.get('set-cookie')?.endsWith('; Secure')
  expect(await isSecure({ origin: gateway.url })).toBe(false)
  expect(await isSecure({ origin: 'https://gateway.example' })).toBe(true)
})

test('failed sign-ins of an address are limited; a successful one is not counted', async () => {
  const { signIn } = await openConsole()
  for (let count = 0; count < 12; count++) expect((await signIn('boss')).status).toBe(200)
  const statuses = await Promise.all(Array.from({ length: 14 }, async () => (await signIn('wrong')).status))
  expect(statuses.filter((status) => status === 401)).toHaveLength(10)
  expect(statuses.filter((status) => status === 429)).toHaveLength(4)
  const limited = await signIn('boss')
  expect([limited.status, await codeOf(limited)]).toEqual([429, 'too_many_sign_ins'])
  expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('a sign-in needs no body, and one that is sent is not kept', async () => {
  const { gateway } = await openConsole()
  const status = await new Promise((resolve, reject) => {
    const call = request(`${gateway.url}/console/session`, { method: 'POST' }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    call.on('error', reject)
    call.setHeader('content-length', 60_000_000)
    call.write('x'.repeat(1_000))
  })
  expect(status).toBe(401)
})
