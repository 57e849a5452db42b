/** The conversation routes over a real gateway with records on disk. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'

const dir = mkdtempSync(join(tmpdir(), 'weir-conversations-'))
let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway({
    plugins: {
      auth: { tenantKeys: ['team-a:key-a', 'team-b:key-b'] },
      storage: { dir },
      history: {},
      conversations: {},
    },
  })
})
afterAll(async () => {
  await gateway.stop()
  rmSync(dir, { recursive: true, force: true })
})

interface Result {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: bodies of any shape
  readonly body: any
}

async function call(
  method: string,
  path: string,
  body?: unknown,
  key: string | null = 'key-a',
): Promise<Result> {
  const reply = await fetch(gateway.url + path, {
    method,
    headers: {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: reply.status, body: await reply.json() }
}

/** What a response names as ignored. */
async function ignoredBy(path: string, body: object): Promise<string | null> {
  const headers = { authorization: 'Bearer key-a', 'content-type': 'application/json' }
  const reply = await fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  expect(reply.status).toBe(200)
  return reply.headers.get('x-weir-warning')
}

const begin = async (body: unknown = {}, key = 'key-a') =>
  (await call('POST', '/v1/conversations', body, key)).body.id as string
const userMessage = (text: string) => ({ type: 'message', role: 'user', content: text })
const add = (id: string, ...items: unknown[]) => call('POST', `/v1/conversations/${id}/items`, { items })
const list = (id: string, query = '') => call('GET', `/v1/conversations/${id}/items${query}`)
const textsOf = ({ body }: Result) =>
  body.data.map((item: { content: { text: string }[] }) => item.content[0].text)
const refused = (param: string | undefined, code: string) => ({
  status: 400,
  body: {
    error: { message: expect.any(String), type: 'invalid_request_error', code, ...(param && { param }) },
  },
})
const missing = (code: string) => ({
  status: 404,
  body: { error: { message: expect.any(String), type: 'not_found_error', code } },
})

test('members of a body that are not used are named', async () => {
  const named = (...names: string[]) => `members_ignored; count=${names.length}; names="${names.join(' ')}"`
  const id = await begin()
  const unknown = { store: false, tools: [], absent: null }
  expect(await ignoredBy('/v1/conversations', { metadata: {}, items: [], ...unknown })).toBe(
    named('store', 'tools'),
  )
  expect(await ignoredBy(`/v1/conversations/${id}`, { metadata: {}, items: [] })).toBe(named('items'))
  expect(await ignoredBy(`/v1/conversations/${id}/items`, { items: [userMessage('a')], metadata: {} })).toBe(
    named('metadata'),
  )
  expect(await ignoredBy('/v1/conversations', { metadata: {}, items: [userMessage('a')] })).toBeNull()
})

describe('conversations', () => {
  test('a conversation is created with and without a body, read, and deleted once', async () => {
    const { status, body } = await call('POST', '/v1/conversations', { metadata: { topic: 'x' } })
    expect(status).toBe(200)
    expect(body).toEqual({
      id: expect.stringMatching(/^conv_[0-9a-f]{32}$/),
      object: 'conversation',
      created_at: expect.any(Number),
      metadata: { topic: 'x' },
    })
    expect(Number.isInteger(body.created_at)).toBe(true)
    expect(await call('GET', `/v1/conversations/${body.id}`)).toEqual({ status: 200, body })
    const deleted = { id: body.id, object: 'conversation.deleted', deleted: true }
    expect(await call('DELETE', `/v1/conversations/${body.id}`)).toEqual({ status: 200, body: deleted })
    expect(await call('DELETE', `/v1/conversations/${body.id}`)).toEqual(missing('conversation_not_found'))
    expect(await call('GET', `/v1/conversations/${body.id}`)).toEqual(missing('conversation_not_found'))
    for (const empty of [undefined, {}, { metadata: null }, { metadata: {}, items: null }, { items: [] }]) {
      expect((await call('POST', '/v1/conversations', empty)).body.metadata).toEqual({})
    }
  })

  test('a conversation can be created with items', async () => {
    const id = await begin({ items: [userMessage('one'), { role: 'assistant', content: 'two' }] })
    expect(textsOf(await list(id, '?order=asc'))).toEqual(['one', 'two'])
    const bad = await call('POST', '/v1/conversations', { items: [userMessage('one'), { type: '' }] })
    expect(bad).toEqual(refused('items[1].type', 'invalid_value'))
  })

  test('metadata is merged, null removes a key', async () => {
    const id = await begin({ metadata: { a: '1', b: '2' } })
    const path = `/v1/conversations/${id}`
    expect((await call('POST', path, { metadata: { b: null, c: '3' } })).body.metadata).toEqual({
      a: '1',
      c: '3',
    })
    for (const nothing of [undefined, {}, { metadata: null }, { metadata: {} }]) {
      expect((await call('POST', path, nothing)).body.metadata).toEqual({ a: '1', c: '3' })
    }
    const keys = Array.from({ length: 10 }, (_, index) => `k${index}`)
    await Promise.all(keys.map((key) => call('POST', path, { metadata: { [key]: 'v' } })))
    const { metadata } = (await call('GET', path)).body
    expect(Object.keys(metadata).toSorted()).toEqual(['a', 'c', ...keys])
  })

  test('16 properties are accepted, 17 are rejected without a change', async () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']))
    const wrong = refused('metadata', 'invalid_metadata')
    expect(await call('POST', '/v1/conversations', { metadata: many(17) })).toEqual(wrong)
    const id = await begin({ metadata: many(16) })
    const path = `/v1/conversations/${id}`
    expect(await call('POST', path, { metadata: { one: 'more' } })).toEqual(wrong)
    expect((await call('GET', path)).body.metadata).toEqual(many(16))
    expect((await call('POST', path, { metadata: { k0: null, one: 'more' } })).status).toBe(200)
  })

  test.each([
    [[]],
    ['text'],
    [7],
    [{ a: 1 }],
    [{ a: true }],
    [{ a: {} }],
    [{ a: 'x'.repeat(513) }],
    [{ ['k'.repeat(65)]: 'x' }],
  ])('the metadata %j is refused', async (metadata) => {
    const wrong = refused('metadata', 'invalid_metadata')
    expect(await call('POST', '/v1/conversations', { metadata })).toEqual(wrong)
    const id = await begin()
    expect(await call('POST', `/v1/conversations/${id}`, { metadata })).toEqual(wrong)
  })

  test('keys named like object members are ordinary keys', async () => {
    const raw = '{"metadata":{"__proto__":"x","constructor":"y"}}'
    const { body } = await call('POST', '/v1/conversations', raw)
    const shown = await (
      await fetch(`${gateway.url}/v1/conversations/${body.id}`, {
        headers: { authorization: 'Bearer key-a' },
      })
    ).text()
    expect(shown).toContain('"__proto__":"x"')
    expect(shown).toContain('"constructor":"y"')
  })

  test('a body that is no JSON object is rejected', async () => {
    const id = await begin()
    for (const path of ['/v1/conversations', `/v1/conversations/${id}`, `/v1/conversations/${id}/items`]) {
      for (const body of ['{', '[]', '7', 'null', '"x"']) {
        expect(await call('POST', path, body)).toMatchObject({
          status: 400,
          body: { error: { code: 'json_parse_error' } },
        })
      }
    }
  })

  test.each(['abc', 'conv_unknown', 'conv_%00', 'conv_..%2F', '%F0%9F%8C%8D', 'x'.repeat(2_000)])(
    'the id %j in a path is an unknown one',
    async (id) => {
      const gone = missing('conversation_not_found')
      const path = `/v1/conversations/${id}`
      expect(await call('GET', path)).toEqual(gone)
      expect(await call('POST', path, { metadata: { a: 'b' } })).toEqual(gone)
      expect(await call('DELETE', path)).toEqual(gone)
      expect(await call('GET', `${path}/items`)).toEqual(gone)
      expect(await call('POST', `${path}/items`, { items: [userMessage('x')] })).toEqual(gone)
      expect(await call('GET', `${path}/items/msg_1`)).toEqual(gone)
      expect(await call('DELETE', `${path}/items/msg_1`)).toEqual(gone)
    },
  )
})

describe('items', () => {
  test('errors of wrong members say which and what was expected', async () => {
    const of = async (path: string, body: object) => (await call('POST', path, body)).body.error
    expect(await of('/v1/conversations', { metadata: { a: 1 } })).toMatchObject({
      message: 'metadata.a must be a string (got 1)',
      param: 'metadata',
    })
    const { id } = (await call('POST', '/v1/conversations', {})).body
    expect(await of(`/v1/conversations/${id}/items`, { items: [] })).toMatchObject({
      message: 'items must not be empty',
    })
  })

  test('items of every type are stored in order, with id, status and time', async () => {
    const id = await begin()
    const items = [
      userMessage('hi'),
      { role: 'assistant', content: [{ type: 'output_text', text: 'ho' }], phase: 'commentary' },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 's' }], encrypted_content: 'e' },
      { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{ "a":1}' },
      { type: 'function_call_output', call_id: 'call_1', output: '' },
      { type: 'mcp_list_tools', server_label: 's', tools: [] },
      { type: 'mcp_call', server_label: 's', name: 't', arguments: '{}', output: 'o' },
    ]
    const { status, body } = await add(id, ...items)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      object: 'list',
      first_id: body.data[0].id,
      last_id: body.data[6].id,
      has_more: false,
    })
    const prefixes = ['msg', 'msg', 'rs', 'fc', 'fco', 'mcpl', 'mcp']
    for (const [index, item] of body.data.entries()) {
      expect(item.id).toMatch(new RegExp(`^${prefixes[index]}_[0-9a-f]{32}$`))
      expect(item).toMatchObject({ status: 'completed', created_at: expect.any(Number) })
    }
    expect(body.data[0].content).toEqual([{ type: 'input_text', text: 'hi' }])
    expect(body.data[1]).toMatchObject({
      phase: 'commentary',
      content: [{ text: 'ho', annotations: [], logprobs: [] }],
    })
    expect(body.data[3].arguments).toBe('{ "a":1}')
    expect((await list(id, '?order=asc')).body.data).toEqual(body.data)
    expect((await list(id)).body.data).toEqual(body.data.toReversed())
    for (const item of body.data) {
      expect(await call('GET', `/v1/conversations/${id}/items/${item.id}`)).toEqual({
        status: 200,
        body: item,
      })
    }
  })

  test('members that begin with an underscore are reserved and dropped', async () => {
    const id = await begin()
    const call = { type: 'mcp_call', server_label: 's', name: 't', arguments: '{}', output: 'o' }
    const { status, body } = await add(id, { ...call, _modelText: 'internal', _x: 1 })
    expect([status, Object.keys(body.data[0]).filter((name) => name.startsWith('_'))]).toEqual([200, []])
    expect((await list(id)).body.data[0]).toMatchObject(call)
  })

  test('include selects stored fields that are omitted by default', async () => {
    const id = await begin()
    const logprobs = [{ token: 'h', logprob: -1 }]
    await add(
      id,
      { type: 'reasoning', summary: [], encrypted_content: 'secret' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'h', logprobs }] },
    )
    const [plain] = (await list(id, '?order=asc')).body.data
    expect(plain).not.toHaveProperty('encrypted_content')
    for (const query of [
      'include=reasoning.encrypted_content&include=message.output_text.logprobs',
      'include[]=reasoning.encrypted_content&include[]=message.output_text.logprobs',
      'include=reasoning.encrypted_content,message.output_text.logprobs',
    ]) {
      const { data } = (await list(id, `?order=asc&${query}`)).body
      expect(data[0].encrypted_content).toBe('secret')
      expect(data[1].content[0].logprobs).toEqual(logprobs)
    }
    expect(await list(id, '?include=foo')).toEqual(refused('include', 'invalid_query'))
  })

  test('an addition of 21 items, or of 20 with an invalid last one, adds none', async () => {
    const id = await begin()
    const twenty = Array.from({ length: 20 }, (_, index) => userMessage(String(index)))
    expect(await add(id, ...twenty, userMessage('more'))).toEqual(refused('items', 'too_many_items'))
    const bad = await add(id, ...twenty.slice(1), { type: 'message', content: 'x' })
    expect(bad).toEqual(refused('items[19].role', 'missing_required_parameter'))
    const unknown = await add(id, ...twenty.slice(1), { type: 'item_reference', id: 'msg_unknown' })
    expect(unknown).toEqual(missing('item_not_found'))
    expect((await list(id)).body).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
    expect((await add(id, ...twenty)).body.data).toHaveLength(20)
  })

  test.each([
    [{ items: undefined }, 'items', 'missing_required_parameter'],
    [{ items: null }, 'items', 'missing_required_parameter'],
    [{ items: [] }, 'items', 'missing_required_parameter'],
    [{ items: 'x' }, 'items', 'invalid_type'],
    [{ items: [7] }, 'items[0]', 'invalid_type'],
    [{ items: [{}] }, 'items[0].type', 'missing_required_parameter'],
    [{ items: [{ type: 7 }] }, 'items[0].type', 'invalid_type'],
    [{ items: [{ type: '__proto__' }] }, 'items[0].type', 'invalid_value'],
    [{ items: [{ type: 'message', role: 'tool', content: 'x' }] }, 'items[0].role', 'invalid_value'],
    [{ items: [{ type: 'message', role: 'user' }] }, 'items[0].content', 'missing_required_parameter'],
    [
      { items: [{ type: 'message', role: 'user', content: '' }] },
      'items[0].content',
      'message_content_empty',
    ],
    [
      { items: [{ type: 'message', role: 'user', content: [] }] },
      'items[0].content',
      'message_content_empty',
    ],
    [{ items: [{ type: 'message', role: 'user', content: 7 }] }, 'items[0].content', 'invalid_type'],
    [
      { items: [{ role: 'user', content: [{ text: 'x' }] }] },
      'items[0].content[0].type',
      'missing_required_parameter',
    ],
    [{ items: [{ role: 'user', content: [{ type: '' }] }] }, 'items[0].content[0].type', 'invalid_value'],
    [
      { items: [{ role: 'user', content: [{ type: 'input_text' }] }] },
      'items[0].content[0].text',
      'missing_required_parameter',
    ],
    [{ items: [{ type: 'reasoning', summary: 'x' }] }, 'items[0].summary', 'invalid_type'],
    [
      { items: [{ type: 'function_call', name: 'f', arguments: '{}' }] },
      'items[0].call_id',
      'missing_required_parameter',
    ],
    [
      { items: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: {} }] },
      'items[0].arguments',
      'invalid_type',
    ],
    [
      { items: [{ type: 'function_call_output', call_id: 'c' }] },
      'items[0].output',
      'missing_required_parameter',
    ],
    [
      { items: [{ type: 'function_call_output', call_id: 'c'.repeat(4_097), output: '' }] },
      'items[0].call_id',
      'invalid_value',
    ],
    [{ items: [{ type: 'item_reference' }] }, 'items[0].id', 'missing_required_parameter'],
    [{ items: [{ type: 'reasoning', summary: [null] }] }, 'items[0].summary[0]', 'invalid_type'],
    [
      { items: [{ type: 'reasoning', summary: [{ type: 'summary_text' }] }] },
      'items[0].summary[0].text',
      'missing_required_parameter',
    ],
    [{ items: [{ type: 'reasoning', summary: [], content: 5 }] }, 'items[0].content', 'invalid_type'],
    [{ items: [{ type: 'reasoning', summary: [], content: ['x'] }] }, 'items[0].content[0]', 'invalid_type'],
    [
      { items: [{ type: 'function_call_output', call_id: 'c', output: [null] }] },
      'items[0].output[0]',
      'invalid_type',
    ],
    [
      { items: [{ role: 'user', content: [{ type: 'input_file', file_data: 7 }] }] },
      'items[0].content[0].file_data',
      'invalid_type',
    ],
    [
      { items: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'x' } }] }] },
      'items[0].content[0].input_audio.format',
      'missing_required_parameter',
    ],
    [
      { items: [{ role: 'user', content: [{ type: 'input_video' }] }] },
      'items[0].content[0].video_url',
      'missing_required_parameter',
    ],
  ])('the body %j is refused', async (body, param, code) => {
    const id = await begin()
    expect(await call('POST', `/v1/conversations/${id}/items`, body)).toEqual(refused(param, code))
    expect((await list(id)).body.data).toEqual([])
  })

  test('items come in pages of 100, 100 and 50', async () => {
    const id = await begin()
    for (let from = 0; from < 250; from += 10) {
      await add(id, ...Array.from({ length: 10 }, (_, index) => userMessage(String(from + index))))
    }
    const seen: string[] = []
    const pages: [number, boolean][] = []
    let after = ''
    for (let hasMore = true; hasMore; ) {
      const page = await list(id, after === '' ? '' : `?after=${after}`)
      seen.push(...textsOf(page))
      pages.push([page.body.data.length, page.body.has_more])
      after = page.body.last_id
      hasMore = page.body.has_more
    }
    expect(pages).toEqual([
      [100, true],
      [100, true],
      [50, false],
    ])
    expect(seen).toEqual(Array.from({ length: 250 }, (_, index) => String(249 - index)))
    const exact = await list(id, `?order=asc&limit=50&after=${(await list(id, '?limit=51')).body.last_id}`)
    expect(exact.body).toMatchObject({ has_more: false })
    expect(exact.body.data).toHaveLength(50)
  })

  test.each([
    ['after=msg_unknown', 'after', 'invalid_cursor'],
    ['after=', 'after', 'invalid_cursor'],
    ['limit=0', 'limit', 'invalid_query'],
    ['limit=101', 'limit', 'invalid_query'],
    ['limit=x', 'limit', 'invalid_query'],
    ['limit=1.5', 'limit', 'invalid_query'],
    ['limit=', 'limit', 'invalid_query'],
    ['order=up', 'order', 'invalid_query'],
    ['befor=x', 'befor', 'invalid_query'],
  ])('the query %s is refused', async (query, param, code) => {
    const id = await begin({ items: [userMessage('x')] })
    expect(await list(id, `?${query}`)).toEqual(refused(param, code))
  })

  test('a shared item removed from one conversation stays in the other', async () => {
    const [a, b] = [await begin(), await begin()]
    const { id } = (await add(a, userMessage('shared'))).body.data[0]
    const shared = await add(b, { id })
    expect(shared.body.data[0]).toMatchObject({ id, content: [{ type: 'input_text', text: 'shared' }] })
    expect(await add(b, { type: 'item_reference', id })).toEqual(
      refused('items', 'item_already_in_conversation'),
    )
    const left = await call('DELETE', `/v1/conversations/${a}/items/${id}`)
    expect(left).toMatchObject({ status: 200, body: { id: a, object: 'conversation', metadata: {} } })
    expect(await call('GET', `/v1/conversations/${a}/items/${id}`)).toEqual(missing('item_not_found'))
    expect(await call('DELETE', `/v1/conversations/${a}/items/${id}`)).toEqual(missing('item_not_found'))
    expect((await call('GET', `/v1/conversations/${b}/items/${id}`)).status).toBe(200)
    expect((await list(a)).body.data).toEqual([])
    expect(textsOf(await list(b))).toEqual(['shared'])
  })

  test('item ids of clients are kept if they are new, and replaced otherwise', async () => {
    const [a, b] = [await begin(), await begin()]
    const own = { ...userMessage('mine'), id: 'msg_mine' }
    expect((await add(a, own)).body.data[0].id).toBe('msg_mine')
    const again = await add(b, { ...own, content: 'other' }, { ...own, content: 'third' })
    expect(new Set(['msg_mine', ...again.body.data.map((item: { id: string }) => item.id)]).size).toBe(3)
    expect(textsOf(await list(b, '?order=asc'))).toEqual(['other', 'third'])
    expect((await call('GET', `/v1/conversations/${a}/items/msg_mine`)).body.content[0].text).toBe('mine')
    const odd = await add(a, { ...own, id: '../x' }, { ...own, id: 7 })
    for (const { id } of odd.body.data) expect(id).toMatch(/^msg_[0-9a-f]{32}$/)
  })

  test('an item removed between two pages is still a valid cursor', async () => {
    const id = await begin({ items: ['1', '2', '3'].map(userMessage) })
    const [first] = (await list(id, '?order=asc')).body.data
    await call('DELETE', `/v1/conversations/${id}/items/${first.id}`)
    expect(textsOf(await list(id, `?order=asc&after=${first.id}`))).toEqual(['2', '3'])
  })
})

describe('access', () => {
  const routes = (id: string, item: string): [string, string, unknown?][] => [
    ['GET', `/v1/conversations/${id}`],
    ['POST', `/v1/conversations/${id}`, { metadata: { stolen: 'yes' } }],
    ['DELETE', `/v1/conversations/${id}`],
    ['GET', `/v1/conversations/${id}/items`],
    ['GET', `/v1/conversations/${id}/items?after=${item}`],
    ['POST', `/v1/conversations/${id}/items`, { items: [userMessage('x')] }],
    ['GET', `/v1/conversations/${id}/items/${item}`],
    ['DELETE', `/v1/conversations/${id}/items/${item}`],
  ]

  test('ids of another tenant are treated exactly like unknown ids', async () => {
    const id = await begin({ metadata: { secret: 's' }, items: [userMessage('secret')] })
    const item = (await list(id)).body.data[0].id
    const unknown = routes('conv_unknown', 'msg_unknown')
    for (const [index, [method, path, body]] of routes(id, item).entries()) {
      const foreign = await call(method, path, body, 'key-b')
      const [, unknownPath] = unknown[index]
      const expected = await call(method, unknownPath, body, 'key-b')
      expect(JSON.stringify(foreign).replaceAll(id, 'ID')).toBe(
        JSON.stringify(expected).replaceAll('conv_unknown', 'ID'),
      )
    }
    const own = await begin({}, 'key-b')
    const reference = { items: [{ type: 'item_reference', id: item }] }
    const stolen = await call('POST', `/v1/conversations/${own}/items`, reference, 'key-b')
    expect(stolen).toEqual(missing('item_not_found'))
    const cursor = await call('GET', `/v1/conversations/${own}/items?after=${item}`, undefined, 'key-b')
    expect(cursor).toEqual(refused('after', 'invalid_cursor'))
    const taken = await call(
      'POST',
      `/v1/conversations/${own}/items`,
      { items: [{ ...userMessage('b'), id: item }] },
      'key-b',
    )
    expect(taken.body.data[0].id).toBe(item)
    expect(textsOf(await list(id))).toEqual(['secret'])
    expect((await call('GET', `/v1/conversations/${id}`)).body.metadata).toEqual({ secret: 's' })
  })

  test('without a key, or with a wrong one, every route is rejected', async () => {
    const all = [...routes('conv_x', 'msg_x'), ['POST', '/v1/conversations', {}] as [string, string, unknown]]
    for (const [method, path, body] of all) {
      for (const key of [null, 'wrong']) {
        const { status, body: answer } = await call(method, path, body, key)
        expect(status).toBe(401)
        expect(answer.error.type).toBe('authentication_error')
      }
    }
  })
})

test('the official client manages a conversation', async () => {
  const client = new OpenAI({ apiKey: 'key-a', baseURL: `${gateway.url}/v1` })
  const made = await client.conversations.create({
    metadata: { topic: 'x' },
    items: [{ type: 'message', role: 'user', content: 'hi' }],
  })
  expect((await client.conversations.update(made.id, { metadata: { topic: 'y' } })).metadata).toEqual({
    topic: 'y',
  })
  await client.conversations.items.create(made.id, {
    items: Array.from({ length: 5 }, (_, index) => ({ role: 'assistant' as const, content: String(index) })),
  })
  const seen: string[] = []
  for await (const item of client.conversations.items.list(made.id, { limit: 2, order: 'asc' })) {
    seen.push((item as unknown as { content: { text: string }[] }).content[0].text)
  }
  expect(seen).toEqual(['hi', '0', '1', '2', '3', '4'])
  const [first] = (await client.conversations.items.list(made.id, { order: 'asc' })).data
  await client.conversations.items.delete(first.id as string, { conversation_id: made.id })
  expect((await client.conversations.items.list(made.id)).data).toHaveLength(5)
  expect((await client.conversations.delete(made.id)).deleted).toBe(true)
  await expect(client.conversations.retrieve(made.id)).rejects.toMatchObject({ status: 404 })
})
