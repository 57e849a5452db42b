/** Effects of modules on requests. */
import { describe, expect, test } from 'vitest'
import { sendRaw } from '../support/raw-socket.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const reject = (status: unknown, more: object = {}) => JSON.stringify({ action: 'reject', status, ...more })
const modify = (more: object) => JSON.stringify({ action: 'modify', ...more })

/** The last request that the worker received. */
const sent = (fleet: WasmFleet) => fleet.workers[0].requestsTo(CHAT).at(-1)!

async function executions(fleet: WasmFleet): Promise<number[]> {
  return (await fleet.list()).modules.map(({ module_meta }) => module_meta.access_count)
}

test('continue leaves method, path, query, headers and body unchanged, byte for byte', async () => {
  const fleet = await openWasmFleet()
  const headers = { 'x-request-id-a': 'A  b', 'accept-language': 'de, en;q=0.5' }
  const body = Buffer.from('{ "model":"test-model",  "messages": [], "é": "\\u00e9" }')
  await fleet.chat(body, headers)
  const without = sent(fleet)
  await fleet.attach('a', 'OnRequest', { head: '{"action":"continue"}' }, { needs: { request_body: true } })
  await fleet.attach('b', 'OnRequest')
  await fleet.chat(body, headers)
  const passed = sent(fleet)
  expect(await executions(fleet)).toEqual([1, 1])
  expect([passed.method, passed.path, passed.body]).toEqual([without.method, without.path, without.body])
  const comparable = (headers: typeof passed.rawHeaders) =>
    headers.filter(([name]) => name !== 'x-request-id').map(([name, value]) => `${name}: ${value}`)
  expect(comparable(passed.rawHeaders)).toEqual(comparable(without.rawHeaders))
})

test('a rejection becomes the response, with its status, headers and body; the worker gets no request', async () => {
  const fleet = await openWasmFleet()
  const headers = [
    ['WWW-Authenticate', 'Bearer'],
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
    ['content-type', 'text/plain; charset=utf-8'],
    ['content-length', '3'],
  ]
  await fleet.attach('a', 'OnRequest', { head: reject(401, { headers }), body: 'wér?' })
  const response = await fleet.chat()
  expect([response.status, await response.text()]).toEqual([401, 'wér?'])
  expect(response.headers.get('www-authenticate')).toBe('Bearer')
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  expect(response.headers.get('content-length')).toBe('5')
  expect(fleet.workers[0].requestsTo(CHAT)).toEqual([])
})

test('header changes apply to the worker request: set, then add, then remove', async () => {
  const fleet = await openWasmFleet()
  const head = modify({
    headers_remove: ['x-gone', 'Accept-Language'],
    headers_add: [
      ['x-both', '2'],
      ['x-gone', 'no'],
    ],
    headers_set: [
      ['X-Both', '1'],
      ['x-gone', 'never'],
      ['x-text', 'grün ✓'],
    ],
  })
  await fleet.attach('a', 'OnRequest', { head })
  await fleet.chat(undefined, { 'accept-language': 'de', 'x-both': '0' })
  const { rawHeaders } = sent(fleet)
  const values = (name: string) => rawHeaders.filter(([key]) => key === name).map(([, value]) => value)
  expect(values('x-both')).toEqual(['1', '2'])
  expect([...values('x-gone'), ...values('accept-language')]).toEqual([])
  expect(Buffer.from(values('x-text')[0], 'latin1').toString()).toBe('grün ✓')
})

test('a replaced body is sent to the worker with its own length', async () => {
  const fleet = await openWasmFleet()
  const body = '{"model":"test-model","messages":[{"role":"user","content":"ünïcode"}]}'
  await fleet.attach('a', 'OnRequest', { head: modify({ replaces_body: true }), body })
  await fleet.chat()
  expect(sent(fleet).body.toString()).toBe(body)
  expect(sent(fleet).header('content-length')).toBe(String(Buffer.byteLength(body)))
})

test('a guest receives the request unchanged: repeated headers, query without its question mark, route, tenant', async () => {
  const auth = { apiKey: 'root', tenantKeys: ['team-a:key-a'] }
  const fleet = await openWasmFleet({}, { plugins: { auth }, adminKey: 'root' })
  await fleet.attach('a', 'OnRequest', { do: 'show' })
  const lines = [
    'POST /v1/chat/completions?a=1&b=%20 HTTP/1.1',
    'host: gateway',
    'connection: close',
    'authorization: Bearer key-a',
    'x-twice: 1',
    'x-twice: 2',
    'x-text: grün ✓.',
    'content-length: 2',
  ]
  const reply = await sendRaw(fleet.gateway.port, Buffer.from(`${lines.join('\r\n')}\r\n\r\n{}`), {
    waitMs: 9_000,
  })
  const response = reply.bytes.toString().split('\r\n\r\n')[1]
  const head = JSON.parse(response)
  expect(head).toMatchObject({
    abi: 1,
    phase: 'request',
    now_ms: expect.any(Number),
    request: {
      method: 'POST',
      path: '/v1/chat/completions',
      query: 'a=1&b=%20',
      route: '/v1/chat/completions',
      tenant: 'auth:team-a',
      client_ip: '127.0.0.1',
    },
  })
  const twice = head.request.headers.filter(([name]: string[]) => name === 'x-twice')
  expect(twice).toEqual([
    ['x-twice', '1'],
    ['x-twice', '2'],
  ])
  expect(head.request.headers).toContainEqual(['x-text', 'grün ✓.'])
})

test('a guest receives only what it needs, and null as the tenant without a key', async () => {
  const fleet = await openWasmFleet()
  await fleet.attach('a', 'OnRequest', { do: 'show' }, { needs: { headers: ['X-Wanted'] } })
  const { request } = (await (await fleet.chat({}, { 'x-wanted': '1', 'x-other': '2' })).json()) as {
    request: Record<string, unknown>
  }
  expect(request.headers).toEqual([['x-wanted', '1']])
  expect(request.tenant).toBeNull()
})

test('a guest without need of the client address receives none', async () => {
  const fleet = await openWasmFleet()
  await fleet.attach('a', 'OnRequest', { do: 'show' }, { needs: { client_ip: false } })
  const { request } = (await (await fleet.chat()).json()) as { request: Record<string, unknown> }
  expect(request.client_ip).toBe('')
})

test('a guest receives the request id, from the client or generated', async () => {
  const fleet = await openWasmFleet()
  await fleet.attach('a', 'OnRequest', { do: 'show' })
  const idOf = async (response: Response) =>
    ((await response.json()) as { request: { id: string } }).request.id
  expect(await idOf(await fleet.chat({}, { 'x-request-id': 'mine-1' }))).toBe('mine-1')
  const made = await fleet.chat()
  expect(await idOf(made)).toBe(made.headers.get('x-request-id'))
})

test('the second module sees the changes of the first, in order of registration, a hundred times', async () => {
  const fleet = await openWasmFleet({ poolThreads: 2 })
  const first = await fleet.attach('z', 'OnRequest', { head: modify({ headers_set: [['x-mark', 'first']] }) })
  const second = await fleet.attach('a', 'OnRequest', { do: 'show', when: 'x-mark' })
  const heads = await Promise.all(
    Array.from(
      { length: 100 },
      async () => (await (await fleet.chat()).json()) as { request: { headers: string[][] } },
    ),
  )
  for (const { request } of heads) expect(request.headers).toContainEqual(['x-mark', 'first'])
  expect((await fleet.list()).modules.map(({ module_uuid }) => module_uuid)).toEqual([first, second])
})

test('a later module receives the body written by an earlier one', async () => {
  const fleet = await openWasmFleet()
  await fleet.attach('a', 'OnRequest', { head: modify({ replaces_body: true }), body: 'changed' })
  await fleet.attach('b', 'OnRequest', { do: 'show-body' }, { needs: { request_body: true } })
  expect(await (await fleet.chat()).text()).toBe('changed')
})

test('after a rejection later modules are not called', async () => {
  const fleet = await openWasmFleet()
  await fleet.attach('a', 'OnRequest', { head: reject(403) })
  await fleet.attach('b', 'OnRequest')
  await fleet.chat()
  expect(await executions(fleet)).toEqual([1, 0])
})

test.each(['pool', 'inline'] as const)(
  'tenants never read what another one wrote, nor does another module (%s)',
  async (placement) => {
    const auth = { apiKey: 'root', tenantKeys: ['a:key-a', 'b:key-b'] }
    for (const instance of ['fresh', 'reuse'] as const) {
      for (const what of ['kv', 'var']) {
        const fleet = await openWasmFleet({}, { plugins: { auth }, adminKey: 'root' })
        const post = async (tenant: string, value: string) => {
          const headers = { authorization: `Bearer key-${tenant}` }
          return (await fleet.post('/v1/chat/completions', value, headers)).text()
        }
        const more = { instance, placement, needs: { request_body: true } }
        await fleet.attach('m', 'OnRequest', { do: what }, more)
        const read: string[] = []
        for (let round = 0; round < 3; round++) {
          read.push(await post('a', `a${round}`), await post('b', `b${round}`))
        }
        // Variables are not kept, because the SDK would return the memory of another call.
        expect(read).toEqual(
          what === 'kv'
            ? ['none', 'none', 'a0', 'b0', 'a1', 'b1']
            : ['none', 'none', 'none', 'none', 'none', 'none'],
        )
      }
    }
  },
  180_000,
)

test('concurrent calls each receive their own response', async () => {
  const fleet = await openWasmFleet({ poolThreads: 2 })
  await fleet.attach(
    'a',
    'OnRequest',
    { do: 'show-body' },
    { needs: { request_body: true }, instance: 'reuse' },
  )
  const bodies = Array.from({ length: 100 }, (_, index) => `body ${index} ${'x'.repeat(index * 10)}`)
  expect(await Promise.all(bodies.map(async (body) => (await fleet.chat(body)).text()))).toEqual(bodies)
})

describe('a body above the limit', () => {
  test('is 413 in the error format of the route if a module needs it, and no module is called', async () => {
    const fleet = await openWasmFleet({ maxBodyBytes: 1_000 })
    await fleet.attach('a', 'OnRequest', {}, { needs: { request_body: true } })
    const response = await fleet.chat({ model: 'test-model', messages: [], pad: 'x'.repeat(1_000) })
    expect(response.status).toBe(413)
    expect(await response.json()).toMatchObject({
      error: { type: 'invalid_request_error', code: 'payload_too_large' },
    })
    expect(await executions(fleet)).toEqual([0])
    expect(fleet.workers[0].requestsTo(CHAT)).toEqual([])
  })

  test('passes if no module needs it', async () => {
    const fleet = await openWasmFleet({ maxBodyBytes: 1_000 })
    await fleet.attach('a', 'OnRequest')
    expect((await fleet.chat({ model: 'test-model', messages: [], pad: 'x'.repeat(1_000) })).status).toBe(200)
    expect(await executions(fleet)).toEqual([1])
  })
})

test('public and control-plane routes are never intercepted, so the module can be removed', async () => {
  const fleet = await openWasmFleet()
  const uuid = await fleet.attach('a', ['OnRequest', 'OnResponse', 'OnError'], { head: reject(403) })
  for (const path of ['/health', '/liveness', '/readiness', '/v1/models', '/workers', '/wasm', '/get_loads'])
    expect([path, (await fleet.get(path)).status]).toEqual([path, 200])
  expect((await fleet.chat()).status).toBe(403)
  expect((await fleet.remove(uuid)).status).toBe(200)
  expect((await fleet.chat()).status).toBe(200)
})

test('a rejection with an invalid status is 400; on modify it is ignored', async () => {
  const fleet = await openWasmFleet()
  for (const status of [999, 99, 100, 'x', 401.5]) {
    const uuid = await fleet.attach('a', 'OnRequest', { head: reject(status) })
    expect((await fleet.chat()).status).toBe(400)
    await fleet.remove(uuid)
  }
  await fleet.attach('b', ['OnRequest', 'OnResponse'], { head: modify({ status: 999 }) })
  expect((await fleet.chat()).status).toBe(200)
})

test('protected headers and values with line breaks are dropped and counted', async () => {
  const fleet = await openWasmFleet()
  const head = modify({
    headers_set: [
      ['x-split', 'a\r\nx-evil: 1'],
      ['x-ok', 'yes'],
      ['host', 'evil'],
      ['content-length', '1'],
      ['transfer-encoding', 'chunked'],
      ['bad name', 'x'],
    ],
    headers_remove: ['content-length'],
  })
  await fleet.attach('a', 'OnRequest', { head })
  expect((await fleet.chat()).status).toBe(200)
  const request = sent(fleet)
  expect(request.header('x-ok')).toBe('yes')
  for (const name of ['x-split', 'x-evil', 'transfer-encoding']) expect(request.header(name)).toBeUndefined()
  expect(request.header('host')).not.toBe('evil')
  expect((await fleet.metrics()).get('weir_wasm_dropped_headers_total{module="a"}')).toBe(6)
})

test('credentials are passed only to modules that name or request them', async () => {
  const fleet = await openWasmFleet()
  const sent = { authorization: 'Bearer abc', cookie: 'c=1', 'x-api-key': 'k', 'x-plain': 'p' }
  const seen = async (needs: object) => {
    const uuid = await fleet.attach('a', 'OnRequest', { do: 'show' }, { needs })
    const head = JSON.parse(await (await fleet.chat(undefined, sent)).text())
    await fleet.remove(uuid)
    const names = (head.request.headers as [string, string][]).map(([name]) => name)
    return Object.keys(sent).filter((name) => names.includes(name))
  }
  expect(await seen({})).toEqual(['x-plain'])
  expect(await seen({ credentials: true })).toEqual(Object.keys(sent))
  expect(await seen({ headers: ['authorization', 'x-plain'] })).toEqual(['authorization', 'x-plain'])
})

test('the debug record names the modules that were called, including one that failed', async () => {
  const fleet = await openWasmFleet({}, { plugins: { debug: {} } })
  await fleet.attach('a', 'OnRequest', { head: modify({ headers_set: [['x-a', '1']] }) })
  await fleet.attach('b', 'OnRequest', { do: 'trap' }, { on_failure: 'closed' })
  await fleet.attach('c', 'OnRequest', { head: '{"action":"continue"}' })
  expect((await fleet.chat(undefined, { 'x-request-id': 'one' })).status).toBe(500)
  await expect
    .poll(async () => {
      const { requests = [] } = (await (await fleet.get('/debug/requests/one')).json()) as {
        requests?: { modules: string[] }[]
      }
      return requests.map(({ modules }) => modules)
    })
    .toEqual([['a', 'b']])
})
