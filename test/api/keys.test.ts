/** Keys with restrictions, and keys that are created and revoked at runtime, over real sockets and a real store. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { type Fleet, type FleetOptions, openFleet } from './fleet.ts'
import { connect } from './responses/socket-client.ts'

const ADMIN = { authorization: 'Bearer root' }
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const messages = [{ role: 'user', content: 'hi' }]
const MODELS = ['small', 'large']

function withKeys(options: FleetOptions = {}, keys: object = {}): Promise<Fleet> {
  const dir = mkdtempSync(join(tmpdir(), 'weir-keys-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const plugins = { auth: { apiKey: 'root' }, keys, storage: { dir }, ...options.plugins }
  return openFleet({ workers: [{ models: MODELS }], ...options, plugins })
}

interface Created {
  readonly id: string
  readonly key: string
  readonly [name: string]: unknown
}

async function create(fleet: Fleet, body: object): Promise<Created> {
  const response = await fleet.post('/keys', body, ADMIN)
  expect(response.status).toBe(201)
  expect(response.headers.get('cache-control')).toBe('no-store')
  return (await response.json()) as Created
}

const codeOf = (body: unknown) => (body as { error?: { code: string } }).error?.code

async function chat(fleet: Fleet, key: string, model = 'small'): Promise<string> {
  const response = await fleet.post('/v1/chat/completions', { model, messages }, bearer(key))
  const code = codeOf(await response.json())
  return code === undefined ? String(response.status) : `${response.status} ${code}`
}

function remove(fleet: Fleet, id: string): Promise<Response> {
  return fetch(`${fleet.gateway.url}/keys/${id}`, { method: 'DELETE', headers: ADMIN })
}

test('a key is created, listed, used and revoked; its secret is shown once', async () => {
  const fleet = await withKeys()
  const made = await create(fleet, { tenant: 'acme', name: 'ci', expiresAt: '2099-01-01' })
  expect(made).toMatchObject({
    tenant: 'acme',
    name: 'ci',
    expiresAt: '2099-01-01T00:00:00.000Z',
    models: null,
  })
  expect(await chat(fleet, made.key)).toBe('200')
  expect(await chat(fleet, `${made.key}x`)).toBe('401 invalid_api_key')
  // A key of a tenant does not administer.
  expect((await fleet.get('/keys', bearer(made.key))).status).toBe(401)

  for (const path of ['/keys', `/keys/${made.id}`, '/keys?tenant=acme']) {
    const text = await (await fleet.get(path, ADMIN)).text()
    expect(text).toContain(made.id)
    expect(text).not.toContain(made.key)
    expect(text).not.toContain('digest')
  }
  expect(await (await remove(fleet, made.id)).json()).toEqual({ id: made.id, revoked: true })
  expect(await chat(fleet, made.key)).toBe('401 invalid_api_key')
  const again = await remove(fleet, made.id)
  expect([again.status, codeOf(await again.json())]).toEqual([404, 'key_not_found'])
  expect((await fleet.get(`/keys/${made.id}`, ADMIN)).status).toBe(404)
})

test('a stored key of an operator administers, beside the shared key of the configuration', async () => {
  const fleet = await withKeys()
  const made = await create(fleet, { principal: 'alice', role: 'admin' })
  const user = await create(fleet, { principal: 'bob', role: 'user' })
  expect((await fleet.get('/keys', bearer(made.key))).status).toBe(200)
  expect((await fleet.get('/keys', bearer(user.key))).status).toBe(403)
  expect((await fleet.get('/keys', ADMIN)).status).toBe(200)
  expect(await chat(fleet, made.key)).toBe('401 invalid_api_key')
})

test('listings are filtered and paged in order of creation', async () => {
  const fleet = await withKeys()
  const ids: string[] = []
  for (let i = 0; i < 5; i++) ids.push((await create(fleet, { tenant: i < 3 ? 'a' : 'b' })).id)
  const found: (string | null)[] = []
  let next: string | null = ''
  while (next !== null) {
    const page = (await (await fleet.get(`/keys?limit=2&after=${next}`, ADMIN)).json()) as {
      keys: { id: string | null }[]
      next: string | null
    }
    found.push(...page.keys.map(({ id }) => id))
    next = page.next
  }
  // The shared key of the file first.
  expect(found).toEqual([null, ...ids])
  const filtered = (await (await fleet.get('/keys?tenant=b', ADMIN)).json()) as { keys: { id: string }[] }
  expect(filtered.keys.map(({ id }) => id)).toEqual(ids.slice(3))
  for (const limit of ['0', '1001', 'x', '1e2'])
    expect((await fleet.get(`/keys?limit=${limit}`, ADMIN)).status).toBe(400)
  const named = await fleet.get('/keys?tenant=auth:b', ADMIN)
  expect(named.status).toBe(400)
  expect(await named.json()).toMatchObject({
    error: { param: 'tenant', message: expect.stringContaining('requests have the tenant auth:<id>') },
  })
})

describe('keys of the file', () => {
  const AUTH = {
    apiKey: 'root-key-text',
    tenantKeys: ['team:team-key-text'],
    controlPlaneKeys: ['ops:The operators:admin:ops-key-text', 'no-key-text'],
    keys: [
      {
        id: 'limited',
        tenant: 'a',
        key: 'limited-key-text',
        expiresAt: '2020-01-01',
        models: ['small'],
        routes: ['chat'],
      },
      { id: 'alice', principal: 'alice', role: 'user', digest: 'ab'.repeat(32) },
    ],
  }
  const OPS = bearer('ops-key-text')
  const open = () => withKeys({ plugins: { auth: AUTH, reload: {} } })
  const plain = { name: null, status: 'active', expiresAt: null, models: null, routes: null }
  const LISTED = [
    { ...plain, id: null, setting: 'plugins.auth.apiKey', tenant: 'shared' },
    { ...plain, id: null, setting: 'plugins.auth.tenantKeys.0', tenant: 'team' },
    {
      id: 'limited',
      setting: 'plugins.auth.keys.0',
      name: null,
      tenant: 'a',
      status: 'expired',
      expiresAt: '2020-01-01T00:00:00.000Z',
      models: ['small'],
      routes: ['chat'],
    },
    { ...plain, id: 'alice', setting: 'plugins.auth.keys.1', principal: 'alice', role: 'user' },
    {
      ...plain,
      id: null,
      setting: 'plugins.auth.controlPlaneKeys.0',
      name: 'The operators',
      principal: 'ops',
      role: 'admin',
    },
  ].map((key) => ({ ...key, source: 'file' }))

  test('are listed before the stored ones, without keys and digests', async () => {
    const fleet = await open()
    const response = await fleet.post('/keys', { tenant: 'a' }, OPS)
    const { id } = (await response.json()) as Created
    const text = await (await fleet.get('/keys', OPS)).text()
    const { keys } = JSON.parse(text) as { keys: { id: string; source: string }[] }
    expect(keys.slice(0, -1)).toEqual(LISTED)
    expect(keys.at(-1)).toMatchObject({ id, source: 'store' })
    expect(text).not.toMatch(/-key-text|abab|digest/)
    const idsOf = async (query: string) =>
      ((await (await fleet.get(`/keys?${query}`, OPS)).json()) as { keys: { id: string }[] }).keys.map(
        (key) => key.id,
      )
    expect(await idsOf('tenant=a')).toEqual(['limited', id])
    expect(await idsOf('principal=alice')).toEqual(['alice'])
    expect(await idsOf('principal=a')).toEqual([])
  })

  test('are paged with the stored ones', async () => {
    const fleet = await open()
    for (let i = 0; i < 3; i++) await fleet.post('/keys', { tenant: 'a' }, OPS)
    const whole = (await (await fleet.get('/keys', OPS)).json()) as { keys: object[] }
    expect(whole.keys).toHaveLength(LISTED.length + 3)
    const found: object[] = []
    for (let next: string | null = ''; next !== null; ) {
      const page: { keys: object[]; next: string | null } = JSON.parse(
        await (await fleet.get(`/keys?limit=2&after=${next}`, OPS)).text(),
      )
      expect(page.keys).toHaveLength(2)
      found.push(...page.keys)
      next = page.next
    }
    expect(found).toEqual(whole.keys)
  })

  test('cannot be revoked: the error names the setting, and the key stays valid', async () => {
    const fleet = await open()
    const shown = await fleet.get('/keys/limited', OPS)
    expect([shown.status, await shown.json()]).toEqual([200, LISTED[2]])
    const refused = await fetch(`${fleet.gateway.url}/keys/alice`, { method: 'DELETE', headers: OPS })
    expect([refused.status, await refused.json()]).toEqual([
      409,
      {
        error: {
          type: 'conflict',
          code: 'key_in_configuration',
          message:
            'the key "alice" is in the configuration file and cannot be revoked here; remove plugins.auth.keys.1 from the file and reload',
        },
      },
    ])
    expect((await fleet.get('/keys/alice', OPS)).status).toBe(200)
  })

  test('follow a reload', async () => {
    const fleet = await open()
    fleet.gateway.rewrite({ auth: { ...AUTH, keys: [] } })
    expect((await fleet.post('/config/apply', {}, OPS)).status).toBe(200)
    const { keys } = (await (await fleet.get('/keys', OPS)).json()) as { keys: object[] }
    expect(keys).toEqual(LISTED.filter(({ id }) => id === null))
    expect((await fleet.get('/keys/limited', OPS)).status).toBe(404)
  })
})

test.each<[object, string]>([
  [{}, 'tenant'],
  [{ tenant: 'a', principal: 'b', role: 'admin' }, 'tenant'],
  [{ tenant: '' }, 'tenant'],
  [{ tenant: ' a' }, 'tenant'],
  [{ tenant: 'shared' }, 'tenant'],
  [{ tenant: 'auth:a' }, 'tenant'],
  [{ tenant: 'a\nb' }, 'tenant'],
  [{ tenant: 'a', role: 'admin' }, 'role'],
  [{ principal: 'a' }, 'role'],
  [{ principal: 'a', role: 'root' }, 'role'],
  [{ tenant: 'auth:a' }, 'tenant'],
  [{ tenant: 'shared' }, 'tenant'],
  [{ principal: 'shared', role: 'admin' }, 'principal'],
  [{ tenant: 'a', expiresAt: 'soon' }, 'expiresAt'],
  [{ tenant: 'a', expiresAt: '2020-01-01' }, 'expiresAt'],
  [{ tenant: 'a', models: [] }, 'models'],
  [{ tenant: 'a', routes: ['chat', 'chatt'] }, 'routes.1'],
  [{ tenant: 'a', key: 'own' }, 'key'],
])('%j is rejected and names the field', async (body, param) => {
  const fleet = await withKeys({ workers: [] })
  const response = await fleet.post('/keys', body, ADMIN)
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { param, message: expect.stringContaining(param) } })
  expect(await (await fleet.get('/keys', ADMIN)).json()).toMatchObject({
    keys: [{ source: 'file', setting: 'plugins.auth.apiKey', tenant: 'shared', role: 'admin' }],
    next: null,
  })
})

test('the number of stored keys is limited', async () => {
  const fleet = await withKeys({ workers: [] }, { maxKeys: 1 })
  const { id } = await create(fleet, { tenant: 'a' })
  const full = await fleet.post('/keys', { tenant: 'a' }, ADMIN)
  expect([full.status, codeOf(await full.json())]).toEqual([409, 'too_many_keys'])
  await remove(fleet, id)
  await create(fleet, { tenant: 'a' })
})

test('keys survive a restart', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-keys-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const options = {
    workers: [{ models: MODELS }],
    plugins: { auth: { apiKey: 'root' }, keys: {}, storage: { dir } },
  }
  const first = await openFleet(options)
  const { key } = await create(first, { tenant: 'a', models: ['small'] })
  await first.gateway.stop()
  const second = await openFleet(options)
  expect(await chat(second, key)).toBe('200')
  expect(await chat(second, key, 'large')).toBe('403 model_not_allowed')
})

test('without a credential that could administer the keys, the gateway does not start', async () => {
  const error = await withKeys({ plugins: { auth: { tenantKeys: ['a:k'] } } }).catch((cause: Error) => cause)
  expect(String(error)).toMatch(/keys.*needs a key in the configuration that opens the control plane/)
})

describe('a key that may use one model', () => {
  const LANES = { responses: {}, messages: {}, generations: {}, history: {} }
  const auth = {
    apiKey: 'root',
    keys: [
      { id: 'limited', tenant: 'a', key: 'limited', models: ['small'] },
      { id: 'narrow', tenant: 'a', key: 'narrow', routes: ['chat', 'responses'] },
    ],
  }
  const open = () => withKeys({ plugins: { auth, ...LANES } })

  test.each(['lora_path', 'LoRA_name', 'adapter_id', 'models', 'fallbacks', 'lora\\u005fpath'])(
    'is 403 with %s, which changes the model',
    async (member) => {
      const fleet = await open()
      const send = (path: string, value: string) =>
        fleet.post(
          path,
          `{"messages":[],"model":"small","text":"hi","${member}" : ${value}}`,
          bearer('limited'),
        )
      for (const path of ['/v1/chat/completions', '/generate']) {
        const response = await send(path, '["large"]')
        expect([response.status, await response.text()]).toEqual([
          403,
          expect.stringContaining('which changes the model, is not allowed'),
        ])
        expect((await send(path, 'null')).status).not.toBe(403)
      }
      expect(fleet.workers[0].requests.filter(({ body }) => body.includes('large'))).toEqual([])
    },
  )

  test('is an error with such a member in a message of a WebSocket, in both forms of the message', async () => {
    const fleet = await open()
    const { turn } = await connect(fleet.gateway.url, 'small', 'limited')
    const body = { model: 'small', input: 'hi', store: false, lora_path: 'large' }
    for (const message of [body, { response: body }])
      expect(await turn(message)).toMatchObject([
        { status: 403, error: { code: 'model_change_not_allowed' } },
      ])
    expect(fleet.workers[0].requests.filter(({ body }) => body.includes('large'))).toEqual([])
  })

  test.each<[string, object]>([
    ['/v1/chat/completions', { messages }],
    ['/v1/chat/completions', { messages, stream: true }],
    ['/v1/completions', { prompt: 'hi' }],
    ['/v1/embeddings', { input: 'hi' }],
    ['/v1/rerank', { query: 'a', documents: ['b'] }],
    ['/v1/classify', { input: 'hi' }],
    ['/generate', { text: 'hi' }],
    ['/v1/responses', { input: 'hi', store: false }],
    ['/v1/responses', { input: 'hi', stream: true }],
    ['/v1/responses', { input: 'hi', background: true }],
    ['/v1/messages', { messages, max_tokens: 5 }],
    ['/v1/messages/count_tokens', { messages }],
  ])('is 403 for another on %s %j, before a worker is picked', async (path, body) => {
    const fleet = await open()
    const response = await fleet.post(
      path,
      { ...body, model: 'large' },
      { ...bearer('limited'), 'x-api-key': 'limited' },
    )
    const text = await response.text()
    expect([response.status, text]).toEqual([403, expect.stringContaining("may not use the model 'large'")])
    expect(text).toContain('permission_error')
    // Escaped and repeated names are read as the handler reads them.
    for (const json of ['{"model":"small","model":"large"', '{"model":"small","mod\\u0065l":"large"']) {
      const members = JSON.stringify(body).slice(1)
      const tricked = await fleet.post(path, `${json},${members}`, {
        ...bearer('limited'),
        'x-api-key': 'limited',
      })
      expect(tricked.status).toBe(403)
      await tricked.text()
    }
    expect(fleet.workers[0].requests).toEqual([])
  })

  test('is 403 if the request names none and any worker would do', async () => {
    const fleet = await open()
    const response = await fleet.post('/generate', { text: 'hi' }, bearer('limited'))
    expect([response.status, codeOf(await response.json())]).toEqual([403, 'model_required'])
    expect(fleet.workers[0].requests).toEqual([])
    expect(await chat(fleet, 'limited')).toBe('200')
  })

  test('is rejected per message of a WebSocket', async () => {
    const fleet = await open()
    const socket = new WebSocket(`${fleet.gateway.url.replace('http', 'ws')}/v1/responses`, {
      headers: bearer('limited'),
    })
    onTestFinished(() => socket.terminate())
    await new Promise((resolve) => socket.once('open', resolve))
    for (const message of [
      { type: 'response.create', model: 'large', input: 'hi' },
      { type: 'response.create', response: { model: 'large', input: 'hi' } },
    ]) {
      const answer = new Promise((resolve) => socket.once('message', (data) => resolve(String(data))))
      socket.send(JSON.stringify(message))
      expect(await answer).toContain("may not use the model 'large'")
    }
    expect(fleet.workers[0].requests).toEqual([])
  })

  test('is compared by the name that the client sends, not by what the name stands for', async () => {
    const named = { id: 'named', tenant: 'a', key: 'named', models: ['claude'] }
    const fleet = await withKeys({
      plugins: {
        ...LANES,
        auth: { apiKey: 'root', keys: [...auth.keys, named] },
        'virtual-models': { models: { claude: { targets: [{ model: 'small' }] } } },
      },
    })
    const status = async (key: string, model: string) => {
      const body = { model, messages, max_tokens: 5 }
      const response = await fleet.post('/v1/messages', body, { 'x-api-key': key })
      await response.arrayBuffer()
      return response.status
    }
    expect(await status('named', 'small')).toBe(403)
    expect(await status('limited', 'claude')).toBe(403)
    expect(fleet.workers[0].requests).toEqual([])
    expect(await status('named', 'claude')).not.toBe(403)
    expect(fleet.workers[0].requests).not.toEqual([])
  })

  test('works in the background', async () => {
    const fleet = await open()
    const asked = await fleet.post(
      '/v1/responses',
      { model: 'small', input: 'hi', background: true },
      bearer('limited'),
    )
    const { id } = (await asked.json()) as { id: string }
    const shown = async () => (await fleet.get(`/v1/responses/${id}`, bearer('limited'))).json()
    await expect.poll(shown).toMatchObject({ status: expect.stringMatching(/completed|failed/) })
    expect(fleet.workers[0].requests).not.toEqual([])
  })

  test('is refused with the next message of a WebSocket once it is revoked', async () => {
    const fleet = await open()
    const { id, key } = await create(fleet, { tenant: 'a' })
    const socket = new WebSocket(`${fleet.gateway.url.replace('http', 'ws')}/v1/responses`, {
      headers: bearer(key),
    })
    onTestFinished(() => socket.terminate())
    await new Promise((resolve) => socket.once('open', resolve))
    const send = (message: object) => {
      const answer = new Promise((resolve) => socket.once('message', (data) => resolve(String(data))))
      socket.send(JSON.stringify(message))
      return answer
    }
    expect(await send({ type: 'nonsense' })).toContain('response.create')
    await remove(fleet, id)
    expect(await send({ type: 'response.create', model: 'small', input: 'hi' })).toContain('invalid_api_key')
    expect(fleet.workers[0].requests).toEqual([])
  })

  test('is listed only what it may use; other callers are listed everything', async () => {
    const fleet = await open()
    const listed = async (headers?: Record<string, string>) => {
      const { data } = (await (await fleet.get('/v1/models', headers)).json()) as { data: { id: string }[] }
      return data.map(({ id }) => id)
    }
    expect(await listed()).toEqual(MODELS)
    expect(await listed(ADMIN)).toEqual(MODELS)
    expect(await listed(bearer('limited'))).toEqual(['small'])
    expect(await listed({ 'x-api-key': 'limited' })).toEqual(['small'])
    expect((await fleet.get('/v1/models/small', bearer('limited'))).status).toBe(200)
    expect((await fleet.get('/v1/models/large', bearer('limited'))).status).toBe(404)
    expect((await fleet.get('/v1/models/large')).status).toBe(200)
  })

  test('and one that may use some routes is 403 on the others, in their format', async () => {
    const fleet = await open()
    expect(await chat(fleet, 'narrow')).toBe('200')
    const other = await fleet.post('/v1/embeddings', { model: 'small', input: 'hi' }, bearer('narrow'))
    expect([other.status, codeOf(await other.json())]).toEqual([403, 'route_not_allowed'])
    const message = { model: 'small', messages, max_tokens: 5 }
    const native = await fleet.post('/v1/messages', message, { 'x-api-key': 'narrow' })
    expect([native.status, await native.json()]).toMatchObject([403, { error: { type: 'permission_error' } }])
  })
})
